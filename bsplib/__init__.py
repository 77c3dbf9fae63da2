"""Bulk synchronous parallel programs on numpy arrays."""
