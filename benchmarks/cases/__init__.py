"""The cases that are measured: each module has ``SECTIONS``."""
