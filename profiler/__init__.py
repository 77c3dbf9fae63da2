"""From a trace to costs, the call graph, its critical paths, losses and a report.

:func:`bsplib.load` reads a trace, for programs and notebooks; ``bsp report`` prints one.
"""
