"""A run from call to result, on any backend."""
