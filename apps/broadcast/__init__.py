"""Broadcasts in one stage and in two: ``python -m apps.broadcast --help``.

:mod:`apps.broadcast.broadcast` is the program. :mod:`apps.broadcast.crossover` predicts and
measures the size from which two stages are faster.
"""

from __future__ import annotations

from apps.broadcast.broadcast import command, main, reference

__all__ = ["command", "main", "reference"]
"""Names that tools for applications, such as ``bsp tune``, look for."""
