"""Processes that are kept between runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.util import Finalize
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Never, Self, Unpack, overload

from bsplib.backends.launching import KeptProcesses
from bsplib.backends.signals import held_back
from bsplib.errors import UsageError
from bsplib.group import Group
from bsplib.output_file import TRACE, obstacle
from bsplib.running.failures import trim
from bsplib.running.launch import execute, overridden
from bsplib.running.mapping import mapped
from bsplib.running.options import (
    Arguments,
    First,
    PoolOptions,
    Rest,
    Result,
    Setting,
    check_timeout,
    setting_of,
)
from bsplib.running.program_checks import check_options, check_program
from bsplib.running.task import Task, draw_seeds


class Pool:
    """A BSP machine whose processes are kept and run one program after the other.

    Use it as ``with bsplib.Pool(nprocs=4) as pool: pool.run(main, ...)``. Globals of
    modules stay as a run left them; arrays of a run do not outlive it. After a run
    that ended in an error the processes are started afresh. Runs that several threads
    ask for are done one after the other. A process that is forked from the one that made
    the pool cannot use it. The options of ``bsp run`` apply to a pool, too,
    in place of the arguments here.

    Args:
        nprocs: number of processes; the cores that this process may use if None.
        backend: as for :func:`bsplib.run`. Virtual processors (``"sim"``) are made anew for each
            run, which takes no time.
        profile: file to record all runs of the pool in, as for :func:`bsplib.run`.
        lines: as for :func:`bsplib.run`.
        machine: as for :func:`bsplib.run`.
        check: as for :func:`bsplib.run`.
        wait: as for :func:`bsplib.run`.
        start_method: as for :func:`bsplib.run`.
        sim_seed: as for :func:`bsplib.run`.
        backend_options: as for :func:`bsplib.run`.
        **options: those above, from ``backend`` on.

    Raises:
        ProcessRangeError: ``nprocs`` is less than 1, or more than the backend can have.
        UsageError: there is no such option, backend, Machine, way to wait or start method, or no
            trace can be written at ``profile``.
    """

    def __init__(self, nprocs: int | None = None, **options: Unpack[PoolOptions]) -> None:
        try:
            check_options("Pool", options, ("nprocs", *PoolOptions.__annotations__))
            profile = options.pop("profile", None)
            self._setting: Setting = setting_of(nprocs=nprocs, **options)
            self.profile = profile
        except BaseException as error:
            trim(error)
            raise
        self._owner = os.getpid()
        self._is_closed = False
        self._processes: KeptProcesses | None = None
        self._finalize: Finalize | None = None
        self._turn = threading.Lock()
        self._thread = 0  # that is in a run; 0 where none is

    @property
    def nprocs(self) -> int:
        """Number of processes."""
        return self._setting.options.nprocs

    @property
    def profile(self) -> Path | None:
        """File in which runs are recorded, None for none; it may be changed between runs.

        Raises:
            UsageError: no trace can be written there.
        """
        return self._profile

    @profile.setter
    def profile(self, profile: str | os.PathLike[str] | None) -> None:
        path = None if profile is None else Path(profile).absolute()
        if path is not None and (reason := obstacle(path, TRACE)):
            raise UsageError(f"profile: {reason}")
        self._profile = path

    @overload
    def run(
        self,
        main: Callable[[Group, *Arguments], Result],
        /,
        *args: *Arguments,
        timeout: float | None = ...,
    ) -> list[Result]: ...
    @overload  # arguments of main by keyword: options come before, as PEP 612 demands
    def run(
        self,
        main: Callable[Concatenate[Group, Rest], Result],
        _no_more: Never = ...,
        /,
        timeout: float | None = ...,
        *args: Rest.args,
        **kwargs: Rest.kwargs,
    ) -> list[Result]: ...
    @overload  # both ways: of what comes after the first argument nothing is known
    def run(
        self,
        main: Callable[Concatenate[Group, First, ...], Result],
        first: First,
        /,
        *args: Any,
        timeout: float | None = ...,
        **kwargs: Any,
    ) -> list[Result]: ...
    def run(  # type: ignore[misc]  # main may be named
        self, main: Callable[..., Any], *args: Any, timeout: float | None = None, **kwargs: Any
    ) -> list[Any]:
        """Run ``main(bsp, *args, **kwargs)`` in every process of the pool.

        Args:
            main: the program.
            *args: given to ``main`` in every process.
            timeout: seconds that the run may take, once the processes have started and are idle.
            **kwargs: given to ``main`` in every process.

        Returns:
            What ``main`` returned, by pid.

        Raises:
            UsageError: the pool is closed, or belongs to the process from which this one was
                forked; this thread is in a run of it already; or ``main`` cannot be run with
                the arguments.
            RunTimeoutError: the run took longer than ``timeout``.
            Exception: as :func:`bsplib.run`.
        """
        try:
            args, kwargs = overridden(main, args, kwargs)
            check_program(main, args, kwargs, ("timeout",))
            task = Task(main, args, kwargs, draw_seeds(), self._setting.conditions)
            seconds = check_timeout(timeout) or self._setting.options.timeout
            self._check("run")
        except BaseException as error:
            trim(error)
            raise
        with self._turn:
            self._thread = threading.get_ident()
            try:
                processes = self._ready()
                return execute(
                    task,
                    self._setting,
                    self._profile,
                    lambda work: processes.run(work, seconds),
                    seconds,
                )
            except BaseException as error:
                self._end()
                trim(error)
                raise
            finally:
                self._thread = 0

    def map(
        self,
        function: Callable[..., Result],
        items: Iterable[Any],
        *more: Iterable[Any],
        chunk: int | None = None,
        progress: bool = False,
        timeout: float | None = None,
    ) -> list[Result]:
        """Call a function for each item in the processes of the pool; see :func:`bsplib.map`.

        Args:
            function: is called with one item, or with one of each.
            items: anything that can be iterated over; rows of an array are items.
            *more: further items, for further arguments of the function.
            chunk: how many items a process takes at a time; see :func:`bsplib.map`.
            progress: draw a bar, if standard error is a terminal.
            timeout: as for :meth:`run`.

        Returns:
            What ``function`` returned, in the order of the items.

        Raises:
            ArgumentError: as :func:`bsplib.map`.
            Exception: what ``function`` raised, with a note that names the item.
            BspError: as :meth:`run`.
        """
        run = partial(self.run, timeout=timeout)
        return mapped(run, function, (items, *more), chunk, progress=progress)

    def close(self) -> None:
        """End the processes, after the runs that other threads are in.

        Raises:
            UsageError: this thread is in a run of the pool.
        """
        if os.getpid() != self._owner:
            return
        self._check("close")
        with self._turn, held_back():
            self._is_closed = True
            self._release()

    def _check(self, operation: str) -> None:
        """Raise where another process, or another run of this thread, has the pool."""
        if os.getpid() != self._owner:
            raise UsageError(
                "this pool belongs to the process that made it, and this one was forked from that; "
                "make a pool here"
            )
        if self._thread == threading.get_ident():  # as in a signal handler: it would deadlock
            raise UsageError(
                f"Pool.{operation}: this thread is in a run of the pool already; use another "
                f"pool, or wait until the run has ended"
            )

    def _ready(self) -> KeptProcesses:
        if self._is_closed:
            raise UsageError("this pool is closed; make another one")
        if self._processes is not None and self._processes.busy:
            self._end()  # a run was interrupted, and stopping its processes was interrupted, too
        if self._processes is None:
            with held_back():
                self._processes = self._start()
                # A program that forgets to close would wait for its processes for ever.
                self._finalize = Finalize(self, self._processes.close, exitpriority=0)
        return self._processes

    def _start(self) -> KeptProcesses:
        made = self._setting.backend.keep(self._setting.options)
        try:
            made.start()
        except BaseException:
            made.stop()
            made.close()
            raise
        return made

    def _end(self) -> None:
        with held_back():
            if self._processes is not None:
                self._processes.stop()
                self._release()

    def _release(self) -> None:
        if self._finalize is not None:
            self._finalize()
        self._finalize = self._processes = None

    def __enter__(self) -> Self:
        self._check("with")
        with self._turn:
            try:
                self._ready()
            except BaseException:
                # Not left to the finalizer, which would ignore an interrupt.
                self._end()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
