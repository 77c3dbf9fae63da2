"""Processes of this machine over shared memory."""
