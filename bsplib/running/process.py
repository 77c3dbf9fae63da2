"""What every process of a run does, on every backend: it runs ``main``, perhaps with records."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from contextlib import AbstractContextManager, closing, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from bsplib.backends.base import Alignment, Port
from bsplib.backends.table import own_cores
from bsplib.group import Group
from bsplib.primitives import other_names
from bsplib.primitives.ending import begin, finish_main, retire
from bsplib.primitives.state import Terms, Warn
from bsplib.running.failures import Failure, failure_of
from bsplib.running.observed_groups import empty_stretch_ns, group_class

if TYPE_CHECKING:
    from bsplib.recording.parts import Destination
    from bsplib.recording.spool import Spool
    from bsplib.running.options import Conditions
    from bsplib.running.task import Task


class Returned(NamedTuple):
    """How ``main`` ended where it returned."""

    value: Any

    @property
    def failed(self) -> bool:
        """False: ``main`` returned."""
        return False


def make_group(conditions: Conditions, port: Port) -> Group | None:
    """Make the group of a task of kept processes before there is one.

    Returns:
        None where a group cannot be made before its run.
    """
    if conditions.records is not None or port.clock is not None:
        return None
    return Group(port, Terms(0, conditions.machine, conditions.check))


def run_task(
    task: Task,
    port: Port,
    warn: Warn,
    made: Group | None = None,
    started_ns: int | None = None,
) -> Returned:
    """Run ``main`` in this process; return its result.

    Args:
        task: the program.
        port: of this process.
        warn: lets the caller of the run warn.
        made: what :func:`make_group` has made for this port; it is used for one task.
        started_ns: when this process could begin to set up; None in virtual time.
    """
    _keep_freed_memory()
    conditions = task.conditions
    machine, check, records = conditions.machine, conditions.check, conditions.records
    if records is not None:
        _load_recording()  # before time 0, so that it is no part of the first superstep
    alignment = port.align_clocks(again=records is not None)
    meeting, ready_ns = port.meeting, port.now()
    meeting.meet(0, 0, ready_ns)  # time 0: all processes have arrived
    port.end_superstep()
    if port.clock is None:
        while port.now() < meeting.released:  # where clocks differ, by their error at most
            pass
    terms = Terms(meeting.released, machine, check, warn=functools.cache(warn))
    if records is not None:
        moments = ready_ns if started_ns is None else started_ns, ready_ns
        return Returned(_run_with_records(task, port, terms, records, alignment, moments))
    if made is None:
        made = group_class(is_virtual=port.clock is not None, is_recorded=False)(port, terms)
    made._terms = terms
    return Returned(_run_main(task, made))


def _load_recording() -> None:
    """Import what a run with records needs."""
    import bsplib.experiments.blocks  # noqa: PLC0415  # most runs record nothing
    import bsplib.recording.parts  # noqa: PLC0415
    import bsplib.recording.recorder  # noqa: F401, PLC0415


def _run_with_records(
    task: Task,
    port: Port,
    terms: Terms,
    records: Destination,
    alignment: Alignment | None,
    moments: tuple[int, int],
) -> Any:
    """Run ``main`` with records; ``moments`` are when the process started, and was ready."""
    # Imported here, since most runs record nothing.
    from bsplib.experiments.blocks import Passages  # noqa: PLC0415
    from bsplib.recording.parts import opened  # noqa: PLC0415
    from bsplib.recording.recorder import GroupRecords, Recorder  # noqa: PLC0415
    from bsplib.recording.records import CHARGED, Host, root_group  # noqa: PLC0415
    from bsplib.recording.spool import Spool  # noqa: PLC0415

    conditions, is_virtual = task.conditions, port.clock is not None
    passages = Passages(port.nprocs)
    terms = terms._replace(passages=passages)
    with opened(records, port.pid) as folder, closing(Spool(folder, port.pid)) as spool:
        if alignment is not None:
            spool.define("host", Host(alignment.host, alignment.bound_ns, own_cores()))
        began_ns = port.meeting.released
        if is_virtual:  # the virtual clock begins anew after the barrier
            moments = began_ns, began_ns
        spool.define(
            "noted", dict(zip(("began", "started", "ready"), (began_ns, *moments), strict=True))
        )
        recorder = Recorder(spool, _call_main.__code__, task.main, began_ns, is_virtual=is_virtual)
        with closing(recorder), _sampling(port, spool, began_ns, conditions):
            opened_ns = max(terms.began_ns, port.now())
            recording = GroupRecords(recorder, port, root_group(port.nprocs), opened_ns)
            kind = group_class(is_virtual=is_virtual, is_recorded=True)
            result = _run_main(task, kind(port, terms, recording=recording))
            spool.define("noted", {"finished": port.now()})
        if port.clock is not None and port.clock.charges():
            spool.define("measured", {"cpu": CHARGED})
        spool.define("blocks", passages.document())
        if alignment is not None:
            spool.define("host", Host(*_host_at_end(port, alignment), own_cores()))
        return result


def _sampling(
    port: Port, spool: Spool, began_ns: int, conditions: Conditions
) -> AbstractContextManager[Any]:
    """Sample the lines that this process executes, while the block is executed."""
    if not conditions.lines:
        spool.define("measured", {"lines": "this was switched off, by --no-lines or lines=False"})
        return nullcontext()
    if port.clock is not None:
        spool.define("measured", {"lines": "virtual time passes in no line"})
        return nullcontext()
    from bsplib.recording.line_sampler import LineSampler  # noqa: PLC0415  # not all runs sample

    sampler = LineSampler(spool, _call_main.__code__, began_ns, port.now)
    spool.define("measured", {"lines": sampler.reason})
    return closing(sampler)


def _host_at_end(port: Port, before: Alignment) -> tuple[str, int]:
    """Return the host of this process, with a bound that holds at the end of the run, too."""
    after = port.align_clocks(again=True)
    assert after is not None
    drift_ns = abs(after.offset_ns - before.offset_ns)
    return after.host, max(before.bound_ns, drift_ns + after.bound_ns)


def _run_main(task: Task, group: Group) -> Any:
    clock = group._port.clock
    try:
        begin(group)
        if clock is not None:
            clock.empty_ns = empty_stretch_ns()
            clock.resume()
        result = _call_main(task, group)
        if clock is not None:
            clock.pause()
            clock.settle()
        finish_main(group, getattr(task.main, "__code__", None))
        return result
    finally:
        retire(group)


def _call_main(task: Task, group: Group) -> Any:
    return task.main(group, *task.args, **task.kwargs)


def describe_failure(error: BaseException, pid: int) -> Failure:
    """Describe how ``main`` ended where it raised, and how a call is written that was refused."""
    if isinstance(error, TypeError) and (way_out := other_names.right_call(error, Group)):
        error.add_note(f"[{way_out}]")
    return failure_of(error, pid, _superstep_of(error))


def _superstep_of(error: BaseException) -> int:
    """Return the superstep in which ``main`` raised, from its frames."""
    frame = error.__traceback__
    while frame is not None:
        group = frame.tb_frame.f_locals.get("group")
        if frame.tb_frame.f_code is _call_main.__code__ and isinstance(group, Group):
            return group._engine.superstep
        frame = frame.tb_next
    return 0


# -- how a process allocates the memory of its arrays --------------------------------------------
# The C library of Linux gives memory back to the system as soon as some of it is free at the end
# of the heap, and takes memory for a large array from the system alone. Each operation of numpy on
# large arrays has a new array for its result, so that a loop of them asks the system for the same
# memory again and again: every page of it costs a page fault, which takes longer than to compute
# what the page holds. A process of a run keeps such memory, and uses it for later arrays. The C
# library gives back only what is behind all that is in use, so that one array there keeps
# everything before it.


_ALONE_BYTES = 32 << 20
"""Arrays from this size on have memory of their own, which goes back to the system: a larger number
is refused by the C library."""
_KEPT_BYTES = 128 << 20
"""How much freed memory a process keeps at most, at the end of the heap."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The numbers of both settings in malloc.h."""
_CHOSEN_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which a user of the C library sets this: then nothing is changed."""


@functools.cache
def _keep_freed_memory() -> None:
    """Let this process keep the memory of arrays that are freed, for those to come.

    Nothing is done with another C library than that of GNU, and where the environment has settings
    for it.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _CHOSEN_BY_USER):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _ALONE_BYTES)
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
