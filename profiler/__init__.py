"""From a trace to costs, the call graph, its critical paths and a report."""
