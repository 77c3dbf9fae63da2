"""The options that all applications have: where a program runs, and whether it is recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import bsplib
from bsplib.backends import table as backends
from bsplib.backends.launching import Times
from bsplib.command_options import OutputFile, as_sentence
from bsplib.errors import MissingExtraError
from bsplib.output_file import TRACE
from bsplib.running.options import BackendName, current, overriding


@dataclass(frozen=True)
class ProgramRun:
    """Where a program runs, and whether it is recorded; fields as in :func:`bsplib.run`."""

    nprocs: int | None = None
    backend: BackendName = "shm"
    machine: str | None = None
    profile: Path | None = None
    reports_times: bool = True
    """Whether the virtual times of the run are printed."""

    def run(self, main: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Run a program with these options.

        Returns:
            The results of ``main``, by pid.

        Raises:
            click.ClickException: the options are not valid.
            Exception: any error of :func:`bsplib.run`.
        """
        with _times_reported() if self.reports_times else nullcontext():
            try:
                return bsplib.run(
                    main,
                    *args,
                    nprocs=self.nprocs,
                    backend=self.backend,
                    machine=self.machine,
                    profile=self.profile,
                    **kwargs,
                )
            except (bsplib.UsageError, bsplib.TraceError) as error:
                if error.pid is not None:
                    raise  # the program's own, with its traceback
                raise as_sentence(error) from None


class ProgramCommand(click.Command):
    """A command that names in one sentence the extra that it lacks, and exits with status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _named_extra():
            return super().invoke(ctx)


class Programs(click.Group):
    """A group of commands that report a missing extra in the same way."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command of the group."""
        with _named_extra():
            return super().invoke(ctx)


@contextmanager
def _named_extra() -> Iterator[None]:
    try:
        yield
    except MissingExtraError as error:
        raise as_sentence(error) from None


@contextmanager
def _times_reported() -> Iterator[None]:
    """Print the virtual times of runs, unless ``bsp run`` prints them already."""
    with overriding(report_times=current().report_times or _print_times):
        yield


def _print_times(times: Times) -> None:
    click.echo(times)


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a :class:`ProgramRun`, which the command receives as ``place``."""

    @functools.wraps(command)
    def with_place(
        nprocs: int | None,
        backend: BackendName,
        machine: str | None,
        profile: Path | None,
        **more: Any,
    ) -> Any:
        return command(place=ProgramRun(nprocs, backend, machine, profile), **more)

    for option in reversed(_OPTIONS):
        with_place = option(with_place)
    return with_place


def backend_option(default: str | None = None) -> Callable[..., Any]:
    """Return the option for a backend; what the environment or the program says if None."""
    return click.option(
        "--backend",
        default=default,
        show_default=default is not None,
        type=click.Choice(backends.names()),
        help="shm: real processes; sim: virtual processors, whose virtual time is printed.",
    )


_OPTIONS = (
    click.option(
        "-n",
        "--nprocs",
        type=click.IntRange(1),
        help="Number of processes.  [default: the number of cores]",
    ),
    backend_option("shm"),
    click.option(
        "--machine",
        metavar="NAME",
        help="Machine that prices the communication of virtual processors; a name or a .toml file.",
    ),
    click.option("--profile", type=OutputFile(TRACE), help="Record the run in this trace file."),
)
