"""Two common patterns of parallel programs, as functions that any program may call.

:func:`~apps.paradigms.farm.farm` has a bag of tasks done by all processes, and
:func:`~apps.paradigms.pipeline.pipeline` passes a stream of items through stages. Both use
messages and ``oblsync``, so that no process waits at a barrier; ``docs/paradigms.md`` explains
them, with figures. :mod:`apps.paradigms.model` predicts their times.
"""

from apps.paradigms.errors import TaskError
from apps.paradigms.farm import farm, split
from apps.paradigms.pipeline import pipeline

__all__ = ["TaskError", "farm", "pipeline", "split"]
