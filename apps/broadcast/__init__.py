"""Broadcasts in one stage and in two: ``python -m bsplib.apps.broadcast --help``.

:mod:`bsplib.apps.broadcast.broadcast` is the program. :mod:`bsplib.apps.broadcast.crossover`
predicts and measures the size from which two stages are faster.
"""

from __future__ import annotations

from bsplib.apps.broadcast.broadcast import command, main, reference

__all__ = ["command", "main", "reference"]
"""Its command line, what each process runs, and what comes out of it by numpy alone."""
