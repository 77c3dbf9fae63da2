"""A task: a program with its arguments, in the form that a backend runs, and its outcome."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import random
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib import call_site
from bsplib.backends.base import AFTER_ALL, Port, Stopped
from bsplib.backends.launching import Carrier, Ended, OpenPort, Tell
from bsplib.errors import ArgumentError, BspError, MessageError
from bsplib.running import shared
from bsplib.running.failures import Failure, Halt, halt_of, words_of
from bsplib.running.process import Returned, describe_failure, make_group, run_task
from bsplib.running.terminal import CurrentPid, breakpoints, whole_lines
from bsplib.visible import text_of

if TYPE_CHECKING:
    from bsplib.group import Group
    from bsplib.running.options import Conditions


class Task(NamedTuple):
    """A program with its arguments, for the processes of a run."""

    main: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seeds: Seeds
    """Seeds of the global random generators of real processes."""
    conditions: Conditions


# -- seeds of the global random generators, so that real processes draw different numbers ---------
# A process that is forked inherits the state of ``random`` and of ``numpy.random``. Each
# process therefore seeds both anew, from numbers that the parent draws from its own
# generators and from its pid: the processes differ, and a program whose parent has set a
# seed draws the same in every run.


_BITS = 64


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
    random.seed(f"{seeds.of_random} {pid}")
    if seeds.of_numpy is not None:
        words = [seeds.of_numpy & 0xFFFFFFFF, seeds.of_numpy >> 32, pid]
        np.random.seed(words)  # a forked process inherits this legacy state


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

    def job(self) -> bytes:
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
                return shared.pickled_by_name(job)
        return _pickled(job, task)

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

        return _pickled_outcome(find_task, pid, open_port, tell)

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
        outcome, _ = _pickled_outcome(lambda: self._task, pid, open_port, tell)
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
        self._made: Group | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskRunner) and self.conditions == other.conditions

    __hash__ = None  # type: ignore[assignment]  # conditions need not have any

    def run(self, job: bytes, pid: int, open_port: OpenPort, tell: Tell) -> tuple[bytes, bool]:
        if self.conditions.prepare is not None:
            self.conditions.prepare()
        made, self._made = self._made, None
        outcome, failed = _pickled_outcome(lambda: self._task(job), pid, open_port, tell, made)
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

    def warn(*warning: Any) -> None:
        tell(_WARNS + pickle.dumps(warning, 5))

    outcome: Any
    has_failed, os_pid = False, os.getpid()
    started_ns = time.perf_counter_ns()
    try:
        task = find_task()
        seed_generators(task.seeds, pid)
        conditions = task.conditions
        lines = whole_lines(lambda: pid, label=conditions.label)
        with lines, breakpoints(conditions.debugged, pid):
            outcome = tuple(run_task(task, open_port(), warn, made, started_ns))
    except BaseException as error:
        if os.getpid() != os_pid:
            raise  # main has forked this process, which reports nothing
        outcome, has_failed = _describe(error, pid), True
    try:
        return pickle.dumps(outcome, 5), has_failed
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        return pickle.dumps(describe_failure(_unpicklable_result(pid, reason), pid), 5), True


def _describe(error: BaseException, pid: int) -> Failure | Halt:
    return halt_of(error) if isinstance(error, Stopped) else describe_failure(error, pid)


def _unpicklable_result(pid: int, reason: Exception) -> MessageError:
    """Return the error for a result that cannot be sent to the caller of ``run``."""
    error = MessageError(
        f"what main returned on process {pid} cannot be pickled: {text_of(reason)}; return data, "
        f"such as arrays, numbers and text"
    )
    error.pid, error.superstep = pid, AFTER_ALL
    return error


def read_outcome(pickled: bytes | memoryview, pid: int) -> Any:
    """Return how a process ended from its report; a failure where that cannot be unpickled.

    Args:
        pickled: the report, from a process of this run, hence safe to unpickle.
        pid: the process.
    """
    try:
        return pickle.loads(pickled)
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __setstate__
        error = BspError(
            f"what process {pid} returned or raised cannot be unpickled here: {text_of(reason)}"
        )
        error.pid, error.superstep = pid, AFTER_ALL
        return Failure(pid, AFTER_ALL, error, call_site.END)


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
            raise _unpicklable_result(pid, reason) from None

    def describe(self, error: BaseException, pid: int) -> Ended:
        if isinstance(error, RuntimeError) and "running event loop" in str(error):
            error.add_note(
                "virtual processors share one thread, in which only one event loop can run; "
                "a program that uses asyncio needs backend='shm'"
            )
        return _describe(error, pid)

    def whole_lines(self, current_pid: CurrentPid) -> AbstractContextManager[None]:
        return whole_lines(current_pid, label=self._task.conditions.label)
