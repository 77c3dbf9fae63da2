"""The options of a run: checked, replaced by those of a command, and with defaults filled in."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypedDict,
    TypeVar,
    TypeVarTuple,
)

from bsplib.backends import table as backends
from bsplib.backends.launching import Backend, Options
from bsplib.errors import ArgumentError, ProcessRangeError, UsageError

if TYPE_CHECKING:
    from bsplib.backends.launching import Times
    from bsplib.machine import Machine
    from bsplib.recording.parts import Destination

WAITS = ("auto", "spin", "block")


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


class Setting(NamedTuple):
    """What a run or a pool is to do, as its caller, or the command line, has chosen."""

    backend: Backend
    options: Options
    """What the backend has to know."""
    conditions: Conditions
    machine_given: bool


def choose(  # noqa: PLR0913  # each is an option
    *,
    backend: str = backends.DEFAULT,
    nprocs: int | None = None,
    machine: Machine | str | None = None,
    check: bool = False,
    wait: str = "auto",
    start_method: str | None = None,
    sim_seed: int = 0,
    timeout: float | None = None,
    lines: bool = True,
    backend_options: Mapping[str, Any] | None = None,
) -> Setting:
    """Check the options of a call of :func:`bsplib.run`, and fill in defaults.

    Raises:
        ProcessRangeError: ``nprocs`` is less than 1 or more than the backend can have, or there is
            no such process as the one to be debugged.
        UsageError: there is no such backend, Machine, way to wait, start method or option of the
            backend.
    """
    found = backends.find(backend)
    _check_name("wait", wait, WAITS)
    if start_method is not None:
        _check_name("start_method", start_method, _start_methods())
    chosen = _machine(machine, found.machine)
    own = dict(backend_options or {})
    for name in own:
        if name not in found.own_options:
            known = f"; it has {', '.join(found.own_options)}" if found.own_options else ""
            raise UsageError(f"backend_options: backend {backend!r} has no option {name!r}{known}")
    options = Options(
        _count(nprocs, found), start_method, wait, check_timeout(timeout), _seed(sim_seed), own=own
    )
    if found.is_virtual:
        chosen.need("l")  # every sync has a price
        # Only virtual processors need them.
        from bsplib.machine.speed import time_scale  # noqa: PLC0415
        from bsplib.running.machine_prices import MachinePrices  # noqa: PLC0415

        scale = time_scale(chosen, options.nprocs)
        options = options._replace(scale=scale, prices=MachinePrices(chosen))
    if check:
        # Here, so that processes that are forked have it.
        from bsplib.transfers import checker  # noqa: F401, PLC0415  # few runs are checked
    overrides = current()
    debugged, label, prepare = overrides.debugged, overrides.label, overrides.prepare
    if debugged is not None and debugged >= options.nprocs:
        raise ProcessRangeError(
            f"debug: there is no process {debugged} among {options.nprocs} "
            f"(0 to {options.nprocs - 1})"
        )
    conditions = Conditions(chosen, check, label, None, lines, debugged, prepare)
    return Setting(found, options, conditions, machine is not None)


def setting_of(**options: Any) -> Setting:
    """Check the options of a run or a pool; those of ``bsp run`` replace what the script gives.

    Args:
        **options: those of :func:`bsplib.run`, but for ``profile``.

    Raises:
        ProcessRangeError: the backend cannot have this number of processes.
        UsageError: there is no such backend, Machine, way to wait or start method.
        BspError: this process is one of many that run the program, and cannot join them.
    """
    overrides = current()
    for name in ("backend", "nprocs", "machine", "timeout"):
        if (value := getattr(overrides, name)) is not None:
            options[name] = value
    options["backend"] = backends.backend_for(options.get("backend"), options.get("nprocs"))
    options["check"] = options.get("check") or overrides.check
    options["lines"] = options.get("lines", True) and overrides.lines
    return choose(**options)


def _start_methods() -> list[str]:
    import multiprocessing  # noqa: PLC0415  # a program on virtual processors needs none of it

    return multiprocessing.get_all_start_methods()


def _machine(machine: object, usual: str) -> Machine:
    from bsplib.machine.parameters import (  # noqa: PLC0415  # needed by the first run
        Machine,
        load_machine,
        machine_of_library,
    )

    if machine is None:
        return machine_of_library(usual)
    if isinstance(machine, Machine):
        return machine
    if isinstance(machine, os.PathLike):
        machine = os.fspath(machine)
    if isinstance(machine, str):
        return load_machine(machine)
    raise ArgumentError(
        f"machine is {machine!r}; it is a bsplib.Machine, the name of one, or a .toml file"
    )


def _seed(seed: object) -> int:
    try:
        number = operator.index(seed)  # type: ignore[arg-type]  # it raises where it is no integer
    except TypeError:
        number = -1
    if number < 0:
        raise ArgumentError(f"sim_seed is {seed!r}; it is an integer, 0 or more")
    return number


def check_timeout(timeout: object) -> float | None:
    """Return the seconds that a run may take; None where there is no limit.

    Raises:
        ArgumentError: ``timeout`` is neither None nor a number greater than 0.
    """
    if timeout is None:
        return None
    try:
        seconds = float(timeout)  # type: ignore[arg-type]  # it raises where it is no number
    except (TypeError, ValueError):
        seconds = 0.0
    if isinstance(timeout, str) or not seconds > 0:
        raise ArgumentError(
            f"timeout is {timeout!r}; it is a number of seconds greater than 0, or None"
        )
    return min(seconds, threading.TIMEOUT_MAX)


def _check_name(what: str, name: str, names: tuple[str, ...] | list[str]) -> None:
    if name not in names:
        raise UsageError(f"there is no {what} {name!r}; choose one of {', '.join(names)}")


def _count(nprocs: int | None, backend: Backend) -> int:
    most = backend.most_processes
    if nprocs is None:
        return min(backend.usual_processes(), most)
    try:
        count = operator.index(nprocs)
    except TypeError:
        raise ArgumentError(
            f"nprocs is {nprocs!r}; it is an integer, 1 to {most} on {backend.name}"
        ) from None
    if not 1 <= count <= most:
        raise ProcessRangeError(f"nprocs is {count}; it may be 1 to {most} on {backend.name}")
    return count


# -- what replaces the arguments of ``bsplib.run`` in a script: the options of ``bsp run`` ---------
# A command cannot pass its options to a call that stands in a script. It lays an
# :class:`Overrides`, which nothing changes afterwards, around the script, and the call
# looks it up.


class Overrides(NamedTuple):
    """What holds for a run, whatever its arguments are; a field that is None leaves them."""

    nprocs: int | None = None
    backend: str | None = None
    profile: str | None = None
    profile_else: str | None = None
    """File of the records where neither ``profile`` nor the script names one."""
    machine: Machine | None = None
    check: bool = False
    lines: bool = True
    """False: no lines are sampled, even if the script asks for it."""
    timeout: float | None = None
    debugged: int | None = None
    label: bool = False
    records: bool = True
    """False: nothing is recorded, even if the script asks for it."""
    report_times: Callable[[Times], object] | None = None
    """Called with the virtual times of each run."""
    prepare: Callable[[], object] | None = None
    """Called in each process that is not forked, before it imports the program; it is pickled."""
    repeat: tuple[int, int] | None = None
    """Which repeat of the script its runs belong to, from 0 on, and of how many."""
    arguments: Mapping[str, Any] = MappingProxyType({})
    """Values for parameters of ``main``, by name."""
    called: Callable[[set[str]], object] | None = None
    """Called before each run, with those names of ``arguments`` that are parameters of ``main``."""


_in_context: ContextVar[Overrides] = ContextVar("overrides")
_in_force: list[Overrides] = [Overrides()]
"""The last one is for threads that a script starts: their context is empty."""


def current() -> Overrides:
    """Return what replaces the arguments of a run that is called here and now."""
    return _in_context.get(_in_force[-1])


def override(**changes: Any) -> Overrides:
    """Replace arguments of all runs from now on, as a command does whose process runs a script.

    It has no end, because threads that the script has left behind may call ``bsplib.run``
    after the last line of the script.

    Args:
        **changes: fields of :class:`Overrides`; the others stay as they are.
    """
    new = current()._replace(**changes)
    _in_context.set(new)
    _in_force.append(new)
    return new


@contextmanager
def overriding(**changes: Any) -> Iterator[None]:
    """Replace arguments of the runs inside the ``with`` block.

    Args:
        **changes: fields of :class:`Overrides`; the others stay as they are.
    """
    before = current()
    new = override(**changes)
    try:
        yield
    finally:
        _in_force[:] = [each for each in _in_force if each is not new]
        _in_context.set(before)


# -- the types of the options of a run, for programs that a type checker reads --------------------


BackendName = Literal["shm", "sim", "mpi"]
"""The backends that come with bsplib."""
Wait = Literal["auto", "spin", "block"]
"""How real processes wait for each other."""
StartMethod = Literal["fork", "forkserver", "spawn"]
"""How real processes are started."""


class PoolOptions(TypedDict, total=False):
    """The keywords of :class:`bsplib.Pool`, beside the number of processes."""

    backend: BackendName | None
    profile: str | os.PathLike[str] | None
    lines: bool
    machine: Machine | str | None
    check: bool
    wait: Wait
    start_method: StartMethod | None
    sim_seed: int
    backend_options: Mapping[str, Any] | None


class RunOptions(PoolOptions, total=False):
    """The keywords of :func:`bsplib.run` that it does not give to ``main``."""

    nprocs: int | None
    timeout: float | None


# -- the type variables of ``run`` and ``Pool.run``: what a ``main`` takes, and what it returns ---


Arguments = TypeVarTuple("Arguments")
First = TypeVar("First")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
