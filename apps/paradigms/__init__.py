"""Two common patterns of parallel programs, as functions that any program may call.

:func:`~bsplib.apps.paradigms.farm.farm` has a bag of tasks done by all processes, and
:func:`~bsplib.apps.paradigms.pipeline.pipeline` passes a stream of items through stages. Both use
messages and ``oblsync``, so that no process waits at a barrier; ``docs/howto/tasks.md`` explains
them, with figures. :mod:`bsplib.apps.paradigms.model` predicts their times.
"""

from bsplib.apps.paradigms.errors import TaskError
from bsplib.apps.paradigms.farm import farm, split
from bsplib.apps.paradigms.pipeline import pipeline

__all__ = ["TaskError", "farm", "pipeline", "split"]
