"""What every process of a run does, on every backend, and how its outcome comes to the caller."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pickle
import random
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib.backends.base import Alignment, Port, Stopped
from bsplib.backends.launching import Carrier, Ended, OpenPort, Tell
from bsplib.backends.table import own_cores
from bsplib.errors import ArgumentError, UsageError
from bsplib.group import Group
from bsplib.primitives import other_names
from bsplib.primitives.ending import retire
from bsplib.primitives.state import Terms, Warn
from bsplib.running import shared
from bsplib.running.failures import (
    Failure,
    Halt,
    failure_of,
    halt_of,
    read_outcome,
    unpicklable_result,
    words_of,
)
from bsplib.running.observed_groups import group_class
from bsplib.running.output_lines import CurrentPid, whole_lines
from bsplib.visible import text_of

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
    if records is not None:
        moments = ready_ns if started_ns is None else started_ns, ready_ns
        return Returned(_run_with_records(task, port, terms, records, alignment, moments))
    if made is None:
        made = group_class(is_virtual=port.clock is not None, is_recorded=False)(port, terms)
    made._terms = terms
    return Returned(_run_main(task, made))


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


def _passages(nprocs: int) -> Passages:
    from bsplib.experiments.blocks import Passages  # noqa: PLC0415  # most runs record nothing

    return Passages(nprocs)


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
    moments: tuple[int, int],
) -> Any:
    """Run ``main`` with records; ``moments`` are when the process started, and was ready."""
    # Imported here, since most runs record nothing.
    from bsplib.recording.parts import opened  # noqa: PLC0415
    from bsplib.recording.recorder import GroupRecords, Recorder  # noqa: PLC0415
    from bsplib.recording.records import CHARGED, Host, root_group  # noqa: PLC0415
    from bsplib.recording.spool import Spool  # noqa: PLC0415

    conditions, is_virtual = task.conditions, port.clock is not None
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
        if terms.passages is not None:
            spool.define("blocks", terms.passages.document())
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


# -- a task in the form that a backend runs: in any process, with its outcome sent to the caller --


_WARNS = b"w"
"""First byte of what a process tells when it warns; no report begins with it."""
_PLAIN = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic)


class TaskWork:
    """What every process of a run does; see :class:`Work`.

    Args:
        task: program and arguments.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._conditions = task.conditions
        self._has_raised = False

    @property
    def has_shared(self) -> bool:
        return shared.are_mapped()

    @property
    def job_runner(self) -> TaskRunner:
        return TaskRunner(self._task.conditions)

    def job(self, carrier: Carrier | None = None) -> bytes:
        """See :meth:`Work.job`.

        Where ``main`` can be imported by its name and the arguments are of simple types, the
        job is pickled by name; otherwise everything is pickled by value.
        """
        task = self._task
        job = tuple(task[:-1])  # without its conditions
        is_named = isinstance(task.main, FunctionType) and task.main.__module__ != "__main__"
        values = (*task.args, *task.kwargs.values())
        if is_named and all(isinstance(value, _PLAIN) for value in values):
            with contextlib.suppress(pickle.PicklingError, AttributeError):  # a nested function
                return shared.pickled_by_name(job, carrier)
        return _pickled(job, task, carrier)

    def arguments(self, carrier: Carrier | None = None) -> bytes:
        """See :meth:`Work.arguments`: all but ``main``, by name where that is possible."""
        arguments = tuple(self._task[1:])
        with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
            return shared.pickled_by_name(arguments, carrier)
        return _pickled(arguments, self._task, carrier)

    def with_arguments(
        self, arguments: bytes, pid: int, open_port: OpenPort, tell: Tell
    ) -> tuple[bytes, bool]:

        def find_task() -> Task:
            # From rank 0, which executes the same program.
            task = Task(self._task.main, *pickle.loads(arguments))
            self._conditions = task.conditions
            return task

        lines = whole_lines(lambda: pid, label=self._conditions.label)
        return _pickled_outcome(find_task, lines, pid, open_port, tell)

    def complete(self, report: bytes, pid: int) -> bytes:
        """See :meth:`Work.complete`: with the records of this process, if they lie elsewhere."""
        return _with_records(report, self._conditions, pid)

    def words(self, report: bytes, pid: int, hosts: Mapping[int, str]) -> tuple[int, str] | None:
        outcome = read_outcome(report, pid)
        if not isinstance(outcome, Failure):
            return None
        words, records = words_of(outcome, hosts), self._conditions.records
        if records is not None:
            words += f"bsp: make a trace of what was recorded by: bsp recover {records.folder}\n"
        return outcome.superstep, words

    def alone(self, pid: int, open_port: OpenPort, tell: Tell) -> bytes:
        lines = whole_lines(lambda: pid, label=self._task.conditions.label)
        outcome, _ = _pickled_outcome(lambda: self._task, lines, pid, open_port, tell)
        return _with_records(outcome, self._task.conditions, pid)

    def read(self, told: bytes, pid: int) -> Ended | None:
        if told.startswith(_WARNS):
            self._warn(told)
            return None
        outcome = read_outcome(_received(told, self._task.conditions, pid), pid)
        return outcome if isinstance(outcome, Failure | Halt) else Returned(*outcome)

    def _warn(self, told: bytes) -> None:
        """Warn in the caller, whose filters count: pytest, for example, collects warnings there."""
        if self._has_raised:  # this ends the run, and what comes late must not raise again
            return
        try:
            warnings.warn_explicit(*pickle.loads(told[len(_WARNS) :]))
        except Warning:
            self._has_raised = True
            raise

    def inside(self) -> InsideTask:
        return InsideTask(self._task)


class TaskRunner:
    """Does the tasks of kept processes; see :class:`JobRunner`.

    Runners of the same conditions are equal: processes keep theirs, and what they have prepared.

    Args:
        conditions: of all these tasks.
    """

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self._lines: whole_lines | None = None
        self._made: Group | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskRunner) and self.conditions == other.conditions

    __hash__ = None  # type: ignore[assignment]  # conditions need not have any

    def run(self, job: bytes, pid: int, open_port: OpenPort, tell: Tell) -> tuple[bytes, bool]:
        if self._lines is None:  # the first time; it is the same process each time
            self._lines = whole_lines(lambda: pid, label=self.conditions.label)
        if self.conditions.prepare is not None:
            self.conditions.prepare()
        made, self._made = self._made, None
        outcome, failed = _pickled_outcome(
            lambda: self._task(job), self._lines, pid, open_port, tell, made
        )
        return _with_records(outcome, self.conditions, pid), failed

    def prepare(self, port: Port) -> None:
        self._made = make_group(self.conditions, port)

    def _task(self, job: bytes) -> Task:
        """Return the task of a job; functions and classes of the script were pickled by value."""
        task_main, args, kwargs, seeds = pickle.loads(job)
        for function in (task_main, *args):
            while isinstance(function, functools.partial):
                function = function.func  # noqa: PLW2901
            if getattr(function, "__module__", None) == "__main__":
                # Let instances of the classes of the script be pickled by name, as in the script.
                vars(sys.modules["__main__"]).update(getattr(function, "__globals__", {}))
        return Task(task_main, args, kwargs, seeds, self.conditions)


def _with_records(outcome: bytes, conditions: Conditions, pid: int) -> bytes:
    """Return the report of a process: its outcome, with its records if they are on its host."""
    if conditions.records is None:
        return outcome
    from bsplib.recording.parts import with_part  # noqa: PLC0415  # most runs record nothing

    return with_part(outcome, conditions.records, pid)


def _received(report: bytes, conditions: Conditions, pid: int) -> bytes | memoryview:
    """Return the outcome in a report of a process, and keep the records that came with it."""
    if conditions.records is None:
        return report
    from bsplib.recording.parts import received  # noqa: PLC0415  # most runs record nothing

    outcome, meta = received(report, conditions.records, pid), conditions.records.about["meta"]
    meta["result_bytes"] = meta.get("result_bytes", 0) + len(outcome)
    return outcome


def _pickled_outcome(
    find_task: Callable[[], Task],
    lines: whole_lines,
    pid: int,
    open_port: OpenPort,
    tell: Tell,
    made: Group | None = None,
) -> tuple[bytes, bool]:
    """Do a task in a process of its own, and tell the caller of its warnings.

    Returns:
        Pickled: the tuple of a Returned, a Failure, or a Halt if it was stopped;
        and whether it did not return.
    """
    outcome: Any
    has_failed, os_pid = False, os.getpid()
    started_ns = time.perf_counter_ns()
    try:
        task = find_task()
        seed_generators(task.seeds, pid)
        with lines, breakpoints(task.conditions.debugged, pid):
            warn = _told_to(tell)
            outcome = tuple(run_task(task, open_port(), warn, made, started_ns))
    except BaseException as error:
        if os.getpid() != os_pid:
            raise  # main has forked this process, which reports nothing
        outcome, has_failed = _describe(error, pid), True
    try:
        return pickle.dumps(outcome, 5), has_failed
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        return pickle.dumps(describe_failure(unpicklable_result(pid, reason), pid), 5), True


def _told_to(tell: Tell) -> Warn:
    """Return what tells the caller of a warning; see :meth:`TaskWork.read`."""

    def warn(*warning: Any) -> None:
        tell(_WARNS + pickle.dumps(warning, 5))

    return warn


def _describe(error: BaseException, pid: int) -> Failure | Halt:
    return halt_of(error) if isinstance(error, Stopped) else describe_failure(error, pid)


def _pickled(value: Any, task: Task, carrier: Carrier | None = None) -> bytes:
    """Pickle a part of a task, or all of it.

    Raises:
        ArgumentError: ``main`` or an argument cannot be pickled.
    """
    try:
        return shared.pickled(value, carrier)
    except Exception as reason:
        raise _unpicklable(task, reason) from reason


def _unpicklable(task: Task, reason: Exception) -> ArgumentError:
    """Return the error for a task that cannot be pickled, which names the first such argument."""
    named = [(f"argument {number}", value) for number, value in enumerate(task.args, 1)]
    named += [(f"{word}=", value) for word, value in task.kwargs.items()]
    for name, value in named:
        try:
            shared.pickled(value)
        except Exception:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
            what = f"{name} of main, of type {type(value).__name__},"
            break
    else:
        what = "main"
    return ArgumentError(
        f"run: {what} cannot be pickled, as it has to be to reach the processes: "
        f"{text_of(reason)}; pass data, and make the rest inside main"
    )


class InsideTask:
    """A task of processes that live inside the caller; see :class:`InsideWork`.

    Arguments and results are copied for each process, as between real ones. The global
    random generators are those of the caller.

    Args:
        task: program and arguments.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._arguments = _pickled((task.args, task.kwargs), task)

    def run(self, pid: int, open_port: OpenPort) -> Ended:
        args, kwargs = pickle.loads(self._arguments)  # made above
        task = self._task._replace(args=args, kwargs=kwargs)
        done = run_task(task, open_port(), warnings.warn_explicit)
        try:
            return done._replace(value=pickle.loads(pickle.dumps(done.value, 5)))
        except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
            raise unpicklable_result(pid, reason) from None

    def describe(self, error: BaseException, pid: int) -> Ended:
        if isinstance(error, RuntimeError) and "running event loop" in str(error):
            error.add_note(
                "virtual processors share one thread, in which only one event loop can run; "
                "a program that uses asyncio needs backend='shm'"
            )
        return _describe(error, pid)

    def whole_lines(self, current_pid: CurrentPid) -> AbstractContextManager[None]:
        return whole_lines(current_pid, label=self._task.conditions.label)


# -- ``breakpoint()`` in the real processes of a run, of which none has the keyboard --------------
# On virtual processors it works as anywhere: they live in the process that has the terminal.


TERMINAL = "/dev/tty"
"""The terminal of a process, whatever its standard input and output are."""


class breakpoints:  # noqa: N801  # used like a function, in a with statement
    """Let ``breakpoint()`` do what this process can do, inside the block.

    A hook that the program has set, and the variable PYTHONBREAKPOINT, stay in force.

    Args:
        debugged: the process that is debugged in the terminal, where one is.
        pid: this process.
    """

    def __init__(self, debugged: int | None, pid: int) -> None:
        self._debugged, self._pid = debugged, pid

    def __enter__(self) -> None:
        self._before = sys.breakpointhook
        if self._before is sys.__breakpointhook__ and "PYTHONBREAKPOINT" not in os.environ:
            sys.breakpointhook = _hook(self._debugged, self._pid)

    def __exit__(self, *_: object) -> None:
        sys.breakpointhook = self._before


def _hook(debugged: int | None, pid: int) -> Callable[..., Any]:
    def debug(*_: Any, **__: Any) -> None:
        import pdb  # noqa: PLC0415  # few runs need it

        try:
            keyboard, screen = open(TERMINAL), open(TERMINAL, "w")  # noqa: SIM115  # they stay open
        except OSError as error:
            raise UsageError(
                f"breakpoint: process {pid} has no terminal ({error.strerror}); use backend='sim'"
            ) from None
        pdb.Pdb(stdin=keyboard, stdout=screen, nosigint=True).set_trace(sys._getframe(1))

    def refuse(*_: Any, **__: Any) -> None:
        raise UsageError(
            f"breakpoint: process {pid} cannot read what you type; start the script by "
            f"bsp run --debug {pid}, or run it with backend='sim'"
        )

    def pass_by(*_: Any, **__: Any) -> None:
        """Do nothing: another process is debugged."""

    if debugged is None:
        return refuse
    return debug if debugged == pid else pass_by
