"""What every process of a run does, on every backend."""

from __future__ import annotations

import ctypes
import os
import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib.backends.base import Alignment, Port
from bsplib.backends.table import own_cores
from bsplib.group import Group
from bsplib.primitives import other_names
from bsplib.primitives.ending import retire
from bsplib.primitives.state import Terms, Warn
from bsplib.running.failures import Failure, failure_of
from bsplib.running.observed_groups import group_class

if TYPE_CHECKING:
    from bsplib.experiments.blocks import Passages
    from bsplib.machine import Machine
    from bsplib.recording.parts import Destination
    from bsplib.recording.spool import Spool


class Conditions(NamedTuple):
    """What holds for all tasks of the processes of one run, or of one pool."""

    machine: Machine
    check: bool = False
    """See ``check`` of :func:`bsplib.run`."""
    label: bool = False
    """Lines that a process prints begin with its pid."""
    records: Destination | None = None
    """Where the records go; None where nothing is recorded."""
    lines: bool = True
    """Sample the lines that are executed; only where something is recorded."""
    debugged: int | None = None
    """The real process whose ``breakpoint()`` has the terminal; None where all refuse it."""
    prepare: Callable[[], object] | None = None
    """Called in a process that is not forked, before it imports the program."""


class Returned(NamedTuple):
    """How ``main`` ended where it returned."""

    value: Any

    @property
    def failed(self) -> bool:
        """Whether ``main`` raised an error: no, since it returned."""
        return False


class Task(NamedTuple):
    """A program with its arguments, for the processes of a run."""

    main: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seeds: Seeds
    """Seeds of the global random generators of real processes."""
    conditions: Conditions


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
    passages = None if records is None else _passages(port.nprocs)
    terms = Terms(meeting.released, machine, check, passages, _Once(warn))
    moments = _Moments(ready_ns if started_ns is None else started_ns, ready_ns)
    return Returned(_run_on_terms(task, port, terms, made, alignment, moments))


class _Once:
    """Warns, but of the same thing at the same line only once in a run.

    Args:
        warn: warns.
    """

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._known: set[tuple[Any, ...]] = set()

    def __call__(self, *warning: Any) -> None:
        """Warn; the arguments are those of ``warnings.warn_explicit``."""
        if warning not in self._known:
            self._known.add(warning)
            self._warn(*warning)


class _Moments(NamedTuple):
    """When a process began; see ``bsplib.recording.records.Lifetime``."""

    started_ns: int
    ready_ns: int


def _passages(nprocs: int) -> Passages:
    from bsplib.experiments.blocks import Passages  # noqa: PLC0415  # most runs record nothing

    return Passages(nprocs)


def _run_on_terms(
    task: Task,
    port: Port,
    terms: Terms,
    made: Group | None,
    alignment: Alignment | None,
    moments: _Moments,
) -> Any:
    """Run ``main`` in a group of its own, with records or without, and return its result."""
    records = task.conditions.records
    if made is not None:
        made._terms = terms
        return _run_main(task, made)
    if records is None:
        kind = group_class(is_virtual=port.clock is not None, is_recorded=False)
        return _run_main(task, kind(port, terms))
    return _run_with_records(task, port, terms, records, alignment, moments)


def _load_recording() -> None:
    """Import what a run with records needs."""
    import bsplib.recording.parts  # noqa: PLC0415  # most runs record nothing
    import bsplib.recording.recorder  # noqa: F401, PLC0415


def _run_with_records(
    task: Task,
    port: Port,
    terms: Terms,
    records: Destination,
    alignment: Alignment | None,
    moments: _Moments,
) -> Any:
    # Imported here, since most runs record nothing.
    from bsplib.recording.parts import opened  # noqa: PLC0415
    from bsplib.recording.recorder import GroupRecords, Recorder  # noqa: PLC0415
    from bsplib.recording.records import CHARGED, Host, root_group  # noqa: PLC0415
    from bsplib.recording.spool import Spool  # noqa: PLC0415

    conditions, is_virtual = task.conditions, port.clock is not None
    with opened(records, port.pid) as folder, closing(Spool(folder, port.pid)) as spool:
        if alignment is not None:
            spool.define_host(Host(alignment.host, alignment.bound_ns, own_cores()))
        began_ns = port.meeting.released
        if is_virtual:  # the virtual clock begins anew after the barrier
            moments = _Moments(began_ns, began_ns)
        spool.note(began=began_ns, started=moments.started_ns, ready=moments.ready_ns)
        recorder = Recorder(spool, _call_main.__code__, task.main, began_ns, is_virtual=is_virtual)
        with closing(recorder), _sampling(port, spool, began_ns, conditions):
            opened_ns = max(terms.began_ns, port.now())
            recording = GroupRecords(recorder, port, root_group(port.nprocs), opened_ns)
            kind = group_class(is_virtual=is_virtual, is_recorded=True)
            result = _run_main(task, kind(port, terms, recording=recording))
            spool.note(finished=port.now())
        if port.clock is not None and port.clock.charges():
            spool.define_measured({"cpu": CHARGED})
        if terms.passages is not None:
            spool.define_blocks(terms.passages.document())
        if alignment is not None:
            spool.define_host(Host(*_host_at_end(port, alignment), own_cores()))
        return result


def _sampling(
    port: Port, spool: Spool, began_ns: int, conditions: Conditions
) -> AbstractContextManager[Any]:
    """Sample the lines that this process executes, while the block is executed."""
    if not conditions.lines:
        spool.define_measured({"lines": "this was switched off, by --no-lines or lines=False"})
        return nullcontext()
    if port.clock is not None:
        spool.define_measured({"lines": "virtual time passes in no line"})
        return nullcontext()
    from bsplib.recording.line_sampler import LineSampler  # noqa: PLC0415  # not all runs sample

    sampler = LineSampler(spool, _call_main.__code__, began_ns, port.now)
    spool.define_measured({"lines": sampler.reason})
    return closing(sampler)


def _host_at_end(port: Port, before: Alignment) -> tuple[str, int]:
    """Return the host of this process, with a bound that holds at the end of the run, too."""
    after = port.align_clocks(again=True)
    assert after is not None
    drift_ns = abs(after.offset_ns - before.offset_ns)
    return after.host, max(before.bound_ns, drift_ns + after.bound_ns)


def _run_main(task: Task, group: Group) -> Any:
    try:
        group._begin()
        result = _call_main(task, group)
        group._finish(getattr(task.main, "__code__", None))
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


# -- seeds of the global random generators, so that real processes draw different numbers ---------
# A process that is forked inherits the state of ``random`` and of ``numpy.random``. Each
# process therefore seeds both anew, from numbers that the parent draws from its own
# generators and from its pid: the processes differ, and a program whose parent has set a
# seed draws the same in every run.


_BITS = 64
_PID_BITS = 16
"""Bits for the pid in a seed of ``random``; no backend has as many processes."""


class Seeds(NamedTuple):
    """Seeds that the parent has drawn for one run."""

    of_random: int = 0
    of_numpy: int | None = None
    """None where the parent has not imported ``numpy.random``, and a process that does so
    gets a state of its own."""


def draw_seeds() -> Seeds:
    """Draw the seeds of a run, in its parent."""
    seed = random.getrandbits(_BITS)
    numpy_random = sys.modules.get("numpy.random")  # imported by the program, or not needed
    if numpy_random is None:
        return Seeds(seed)
    return Seeds(seed, int.from_bytes(numpy_random.bytes(_BITS // 8), "little"))


def seed_generators(seeds: Seeds, pid: int) -> None:
    """Seed the global generators of this process.

    Args:
        seeds: seeds of the run.
        pid: this process.
    """
    random.seed(seeds.of_random << _PID_BITS | pid)
    if seeds.of_numpy is not None:
        words = [seeds.of_numpy & 0xFFFFFFFF, seeds.of_numpy >> 32, pid]
        np.random.seed(words)  # a forked process inherits this legacy state


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


@cache
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
