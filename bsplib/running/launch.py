"""``bsplib.run``: start a program on a backend, gather its results and its records."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Never,
    Unpack,
    overload,
)

import numpy as np

from bsplib import core
from bsplib.backends import table as backends
from bsplib.backends.launching import Interrupted, Options, Report, TimeIsOver
from bsplib.group import Group
from bsplib.running.failures import error_of, raise_first, trim
from bsplib.running.options import (
    Arguments,
    BackendName,
    First,
    Rest,
    Result,
    RunOptions,
    Setting,
    StartMethod,
    Wait,
    current,
    setting_of,
)
from bsplib.running.program_checks import check_program, numbers_among, replaced
from bsplib.running.task import Task, TaskWork, draw_seeds
from bsplib.version import __version__

if TYPE_CHECKING:
    from bsplib.machine import Machine


@overload
def run(
    main: Callable[[Group, *Arguments], Result],
    /,
    *args: *Arguments,
    **options: Unpack[RunOptions],
) -> list[Result]: ...
@overload  # arguments of main by keyword: options come before, as PEP 612 demands
def run(
    main: Callable[Concatenate[Group, Rest], Result],
    _no_more: Never = ...,
    /,
    nprocs: int | None = ...,
    backend: BackendName | None = ...,
    profile: str | os.PathLike[str] | None = ...,
    lines: bool = ...,
    machine: Machine | str | None = ...,
    check: bool = ...,
    wait: Wait = ...,
    start_method: StartMethod | None = ...,
    sim_seed: int = ...,
    timeout: float | None = ...,
    backend_options: Mapping[str, Any] | None = ...,
    *args: Rest.args,
    **kwargs: Rest.kwargs,
) -> list[Result]: ...
@overload  # both ways: of what comes after the first argument nothing is known
def run(
    main: Callable[Concatenate[Group, First, ...], Result],
    first: First,
    /,
    *args: Any,
    nprocs: int | None = ...,
    backend: BackendName | None = ...,
    profile: str | os.PathLike[str] | None = ...,
    lines: bool = ...,
    machine: Machine | str | None = ...,
    check: bool = ...,
    wait: Wait = ...,
    start_method: StartMethod | None = ...,
    sim_seed: int = ...,
    timeout: float | None = ...,
    backend_options: Mapping[str, Any] | None = ...,
    **kwargs: Any,
) -> list[Result]: ...
def run(  # type: ignore[misc]  # noqa: PLR0913  # main may be named, and has options by keyword
    main: Callable[..., Any],
    *args: Any,
    nprocs: int | None = None,
    backend: str | None = None,
    profile: str | os.PathLike[str] | None = None,
    lines: bool = True,
    machine: Machine | str | None = None,
    check: bool = False,
    wait: str = "auto",
    start_method: str | None = None,
    sim_seed: int = 0,
    timeout: float | None = None,
    backend_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Run ``main(bsp, *args, **kwargs)`` in every process of a BSP machine.

    Args:
        main: the program; ``bsp`` is a :class:`bsplib.Group`.
        *args: given to ``main`` in every process.
        nprocs: number of processes; the cores that this process may use if None.
        backend: ``"shm"``: processes of this machine over shared memory;
            ``"sim"``: virtual processors, any number of them inside this process.
            Arguments and results are copied as between real processes, globals of
            modules are shared. ``"mpi"``: the ranks that ``mpiexec`` has started on one host
            or many, and that all execute the program: they are the processes of the run, the
            arguments of process 0 count, and all return; docs/mpi.md says how. If None,
            ``"mpi"`` where ``mpiexec`` has started this program as several processes, else
            ``"shm"``.
        profile: file to record the run in; a further run of the same program into
            the same file is added to it, also from another thread, and so is one that a
            program beside this one records there meanwhile. It is written when the run
            ends, in place of a regular file of that name; if it is a symbolic link, the file
            that the link points to is replaced. If this process is killed before,
            ``bsp recover FOLDER`` makes the trace from the records, which lie beside it in a
            folder ``.bsp-records-...``. Nothing is recorded if None.
        lines: let the trace have samples of the lines that each process executes in the thread
            of ``main``, with the calls above them, where that is possible: it needs real
            processes, the compiled core and Linux. The trace says why it has none.
        machine: prices the communication of virtual processors, scales their computation
            where it has a speed, and determines when ``broadcast`` uses two stages: a
            :class:`bsplib.Machine`, the name of one, or a TOML file;
            ``"shared-memory"`` and ``"ideal"`` if None.
        check: report what is legal but probably a mistake, with the lines of both calls:
            overlapping puts and hp-transfers, arrays of transfers that are changed or read
            too early, and arrays that are used after they were freed. Warn of messages
            that are never read. This takes time, and a copy of all registered arrays.
        wait: how real processes wait for each other: ``"auto"``, spinning only where
            each has a core and sleeping where it takes long (some 6 ms, and less where
            another program needs the core); ``"spin"``, never sleeping; ``"block"``,
            always sleeping.
        start_method: ``"fork"``, ``"forkserver"`` or ``"spawn"``; fork where the
            calling process has one thread, else forkserver, if None.
        sim_seed: seed of the order in which virtual processors run.
        timeout: seconds that the run may take; there is no limit if None.
        backend_options: options that only this backend has, by name; those that come with bsplib
            have none.
        **kwargs: given to ``main`` in every process.

    Returns:
        What ``main`` returned, by pid.

    Raises:
        ProcessRangeError: ``nprocs`` is not 1 to 256, on virtual processors and ranks 4096.
        UsageError: there is no such backend, Machine, way to wait or start method; no
            trace can be written at ``profile``; ``main`` cannot take the arguments, would
            not run when called, or has a parameter of the name of a keyword above.
        RunTimeoutError: the run took longer than ``timeout``; the text says where every
            process was. (Ranks of MPI print that, and end with status 124.)
        ProcessDiedError: a process exited or was killed.
        StartError: the processes cannot be started.
        MissingExtraError: mpi4py is not installed, for ``backend="mpi"``.
        SyncMismatchError: processes did not end the same supersteps in the same way.
        Exception: what ``main`` raised, in its own type, with the remote traceback
            as its cause; of several errors, the one of the lowest (superstep, pid).
        TraceError: the file in which earlier runs were recorded is damaged.

    Warns:
        TraceWarning: records were lost, because the disk is full for example; the
            results are returned all the same.
    """
    called_ns = time.perf_counter_ns()
    try:
        args, kwargs = overridden(main, args, kwargs)
        check_program(main, args, kwargs)
        setting = setting_of(
            backend=backend,
            nprocs=nprocs,
            machine=machine,
            check=check,
            wait=wait,
            start_method=start_method,
            sim_seed=sim_seed,
            timeout=timeout,
            lines=lines,
            backend_options=backend_options,
        )
        task = Task(main, args, kwargs, draw_seeds(), setting.conditions)
        return execute(
            task,
            setting,
            profile,
            lambda work: setting.backend.launch(work, setting.options),
            setting.options.timeout,
            called_ns,
        )
    except BaseException as error:
        trim(error)
        raise


def overridden(
    main: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of ``main``, with the values that replace those of the script."""
    overrides = current()
    used: set[str] = set()
    if overrides.arguments:
        args, kwargs, used = replaced(main, args, kwargs, overrides.arguments)
    if overrides.called is not None:
        overrides.called(used)
    return args, kwargs


def execute(
    task: Task,
    setting: Setting,
    profile: str | os.PathLike[str] | None,
    launch: Callable[[TaskWork], Report],
    timeout: float | None,
    called_ns: int | None = None,
) -> list[Any]:
    """Do a task, with records where the program or ``bsp run`` wants them.

    A run in virtual time also reports its times to whoever has asked for them.

    Args:
        task: the program.
        setting: options of the run.
        profile: file that the program names.
        launch: lets a backend do the work.
        timeout: seconds that it may take.
        called_ns: when the program called; now if None.

    Returns:
        What ``main`` returned, by pid.

    Raises:
        BaseException: the error of a process that failed.
    """
    called_ns = time.perf_counter_ns() if called_ns is None else called_ns

    def results(task: Task) -> list[Any]:
        try:
            report = launch(TaskWork(task))
        except (TimeIsOver, Interrupted) as ended:
            error = error_of(ended, timeout)
        else:
            outcomes = report.outcomes
            if any(each.failed for each in outcomes.values()):
                raise_first(outcomes, report.hosts or {})
            report_times = current().report_times
            if report.times is not None and report_times is not None:
                report_times(report.times)
            return [outcomes[pid].value for pid in range(len(outcomes))]  # type: ignore[union-attr]  # none has failed
        raise error  # outside the except clause: the backend's exception is not its context

    def do() -> list[Any]:
        overrides = current()
        target = overrides.profile or profile or overrides.profile_else
        path = None if target is None or not overrides.records else Path(target).absolute()
        with _logged(task, setting):
            if path is None:
                return results(task)
            return _recorded(task, setting, path, results, called_ns)

    return backends.run_in_ranks(do, lambda: TaskWork(task))


@contextmanager
def _logged(task: Task, setting: Setting) -> Iterator[None]:
    """Tell the logger ``bsplib`` of the start and the end of a run, and of fallbacks.

    A program sees it with ``logging.basicConfig(level=logging.INFO)``.
    """
    logging = sys.modules.get("logging")  # who sees messages has imported it
    if logging is None or not (logger := logging.getLogger("bsplib")).isEnabledFor(logging.INFO):
        yield
        return
    name = getattr(task.main, "__qualname__", None) or repr(task.main)
    logger.info(
        "run of %s starts: %d processes, backend %s, core %s",
        name,
        setting.options.nprocs,
        setting.backend.name,
        core.BUILD,
    )
    if core.REASON:
        logger.info("fallback: %s", core.REASON)
    began = time.perf_counter()
    try:
        yield
    except BaseException as error:
        seconds = time.perf_counter() - began
        logger.info("run of %s ended by %s after %.3g s", name, type(error).__name__, seconds)
        raise
    logger.info("run of %s ended after %.3g s", name, time.perf_counter() - began)


def _recorded(
    task: Task, setting: Setting, path: Path, run: Callable[[Task], list[Any]], called_ns: int
) -> list[Any]:
    """Run with records, and write the trace however the run ends."""
    from bsplib.recording.lifetimes import Caller  # noqa: PLC0415  # most runs record nothing
    from bsplib.recording.recording import Recording  # noqa: PLC0415

    meta, backend, nprocs = _meta(task, setting), setting.backend, setting.options.nprocs
    caller = Caller(backend.is_virtual, called_ns)
    recording = Recording(path, nprocs, meta, spread=backend.is_spread, caller=caller)
    try:
        conditions = task.conditions._replace(records=recording.destination)
        results = run(task._replace(conditions=conditions))
    except BaseException as error:
        recording.end(error)
        raise
    recording.end()
    return results


def _meta(task: Task, setting: Setting) -> dict[str, Any]:
    from dataclasses import asdict  # noqa: PLC0415  # only where something is recorded

    is_virtual, machine = setting.backend.is_virtual, setting.conditions.machine
    scaling = {"virtual_time": _scaling(machine, setting.options)} if is_virtual else {}
    repeat = current().repeat
    repeated = {} if repeat is None else {"repeat": list(repeat)}
    return (
        scaling
        | repeated
        | {
            "program": _program(),
            "main": getattr(task.main, "__qualname__", repr(task.main)),
            "arguments": [] if _is_notebook() else sys.argv[1:],
            "parameters": numbers_among(task.main, task.args, task.kwargs),
            "folder": _folder(),
            "backend": setting.backend.name,
            "machine": asdict(machine),
            "machine_given": setting.machine_given,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "cores": backends.own_cores(),
            "cpu_measured": not is_virtual,
            "system": platform.platform(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "bsplib": __version__,
            "core": core.BUILD,
        }
    )


def _program() -> str:
    """Return the name of the program: its file, or the package after ``python -m``."""
    if _is_notebook():  # its server names the file
        return os.path.basename(os.environ.get("JPY_SESSION_NAME", "")) or "notebook"
    file = os.path.basename(sys.argv[0])
    if file == "__main__.py":  # so every package would be called
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        return (spec and spec.parent) or os.path.basename(os.path.dirname(sys.argv[0]))
    return file or "python"


def _is_notebook() -> bool:
    """Tell whether this is the process that runs the cells of a notebook."""
    return os.path.basename(sys.argv[0]) == "ipykernel_launcher.py"


def _folder() -> str:
    """Return the working directory, at which relative names of files begin."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _scaling(machine: Machine, options: Options) -> dict[str, Any]:
    """Return the factors by which CPU time of this computer becomes virtual time."""
    from bsplib.machine.speed import own_speed  # noqa: PLC0415  # as above

    known = machine.speed is not None
    return {
        "seconds_per_cpu_second": options.scale,
        "speed_here": own_speed() if known else None,
        "speed_there": machine.speed,
    }
