"""Large runs predicted from small ones: ``python -m apps.prediction --help``.

:mod:`apps.prediction.prediction` is the program, :mod:`apps.prediction.experiments` has
what it predicts.
"""

from __future__ import annotations

from apps.prediction.prediction import command, main, reference

__all__ = ["command", "main", "reference"]
"""What tools that take any application look for."""
