"""What every process of a run does, on every backend."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bsplib.backends.base import Port
from bsplib.errors import BspError, MessageError, ProcessDiedError, SyncMismatchError
from bsplib.group import Group
from bsplib.machine import Machine
from bsplib.recorder import RecordedGroup, Recorder
from bsplib.records import root_group
from bsplib.seeds import Seeds, draw
from bsplib.spool import Spool
from bsplib.superstep import Terms
from bsplib.virtual_group import in_virtual_time

_Group = TypeVar("_Group", bound=Group)

_AFTER_ALL = 1 << 62
"""The superstep of what goes wrong after the last one."""


@dataclass(frozen=True)
class Task:
    """What the processes of a run are to do."""

    main: Callable[..., Any]
    machine: Machine
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    spool: Path | None = None
    """Folder for the records; None where nothing is recorded."""
    check: bool = False
    """Find transfers that overlap, and arrays that are changed too early."""
    label: bool = False
    """Lines that a process prints begin with its pid."""
    seeds: Seeds = field(default_factory=draw)
    """Of the global random generators of real processes."""


@dataclass(frozen=True)
class Failure:
    """How a process ended that did not return."""

    pid: int
    superstep: int
    error: BaseException
    traceback: str = ""

    def rank(self) -> tuple[int, bool, int]:
        """Return what the first of several failures has the least of.

        A mismatch comes after other errors of its superstep: where a process raises,
        others find that it does not come to their sync.
        """
        return self.superstep, isinstance(self.error, SyncMismatchError), self.pid


def run_task(task: Task, port: Port) -> Any:
    """Run ``main`` in this process and return what it returns."""
    port.meet({}, 0, stamp=port.now())  # time 0 is when the last one is here
    port.turn()
    terms = Terms(port.released, task.machine, task.check)
    if task.spool is None:
        return _run_main(task, _kind(Group, port)(port, terms))
    with closing(Spool(task.spool, port.pid)) as spool:
        return _run_main(task, _recorded_group(task, spool, port, terms))


def _kind(kind: type[_Group], port: Port) -> type[_Group]:
    """Return the class of the groups of a run."""
    return kind if port.clock is None else in_virtual_time(kind)  # type: ignore[arg-type]  # mypy: a class is not hashable


def _run_main(task: Task, group: Group) -> Any:
    group._begin()
    result = _call_main(task, group)
    group._finish()
    return result


def _recorded_group(task: Task, spool: Spool, port: Port, terms: Terms) -> Group:
    code = getattr(task.main, "__code__", None)
    recorder = Recorder(spool, port.pid, _call_main.__code__, code)
    recorder.began_ns = port.released
    kind = _kind(RecordedGroup, port)
    return kind(port, terms, None, recorder, root_group(port.nprocs))


def _call_main(task: Task, group: Group) -> Any:
    return task.main(group, *task.args, **task.kwargs)


def failure_of(error: BaseException, pid: int) -> Failure:
    """Describe how ``main`` ended where it raised.

    Args:
        error: what it raised, ``SystemExit`` included.
        pid: process of the root group.
    """
    superstep = getattr(error, "superstep", None)
    where = superstep if isinstance(superstep, int) else _superstep_of(error)
    if isinstance(error, SystemExit):
        status = 0 if error.code is None else error.code
        died = ProcessDiedError(
            f"process {pid} ended by sys.exit({status!r}) in superstep {where}; return from main"
        )
        died.pid, died.superstep = pid, where
        return Failure(pid, where, died)
    text = "".join(traceback.format_exception(error))
    return Failure(pid, where, _portable(error), text)


def _superstep_of(error: BaseException) -> int:
    """Return the superstep in which ``main`` raised, from its frames."""
    frame = error.__traceback__
    while frame is not None:
        group = frame.tb_frame.f_locals.get("group")
        if frame.tb_frame.f_code is _call_main.__code__ and isinstance(group, Group):
            return group._superstep
        frame = frame.tb_next
    return 0


def unpicklable_result(pid: int, reason: Exception) -> MessageError:
    """Return the error for what cannot travel to the caller of ``run``."""
    error = MessageError(f"what main returned on process {pid} cannot be pickled: {reason}")
    error.pid, error.superstep = pid, _AFTER_ALL
    return error


def _portable(error: BaseException) -> BaseException:
    """Return an error that survives pickling: itself, or one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        kind = type(error).__qualname__
        said = BspError(f"{kind}: {error} (the error itself cannot be pickled: {reason})")
        said.__cause__ = error
        return said
    return error
