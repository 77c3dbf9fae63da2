"""Processes on one host or many, over MPI."""
