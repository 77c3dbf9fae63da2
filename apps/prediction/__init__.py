"""Large runs predicted from small ones: ``python -m bsplib.apps.prediction --help``.

:mod:`bsplib.apps.prediction.prediction` is the program, :mod:`bsplib.apps.prediction.experiments`
has what it predicts.
"""

from __future__ import annotations

from bsplib.apps.prediction.prediction import command, main, reference

__all__ = ["command", "main", "reference"]
"""What tools that take any application look for."""
