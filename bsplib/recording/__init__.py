"""What a run records: supersteps, their traffic and their call stacks."""
