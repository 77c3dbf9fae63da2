"""Broadcasts in one stage and in two: ``python -m apps.broadcast --help``.

:mod:`apps.broadcast.broadcast` is the program. Where two stages begin to pay is predicted
and measured in :mod:`apps.broadcast.crossover`.
"""

from __future__ import annotations

from apps.broadcast.broadcast import command, main, reference

__all__ = ["command", "main", "reference"]
"""What tools that take any application look for."""
