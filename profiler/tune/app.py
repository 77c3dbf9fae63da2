"""The application to tune: a module with a click command named ``command``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from bsplib.command_options import MissingExtra
from bsplib.errors import BspError, MissingExtraError, UsageError
from bsplib.output_file import TRACE, obstacle
from bsplib.recording.trace import read_trace

if TYPE_CHECKING:
    from bsplib.profiler.tune.parameter import Parameter
    from bsplib.recording.records import Run

TRACE_OPTION = "--profile"
"""Option by which an application is told the trace to record its run in."""


@dataclass(frozen=True)
class App:
    """An application that can be run with options, and recorded."""

    name: str
    command: click.Command
    theory: Mapping[str, Callable[[Mapping[str, Any]], int]] = field(default_factory=dict)
    """What theory demands of a parameter, as a function of all options by name, with the
    number of processes as ``nprocs``; ``THEORY`` of the module."""
    means: Mapping[str, str] = field(default_factory=dict)
    """What theory demands a parameter for; ``THEORY_MEANS`` of the module."""
    samples: Mapping[str, Callable[[Mapping[str, Any]], float]] = field(default_factory=dict)
    """How many samples lie between two splitters of a sort, as a function of all options;
    ``SAMPLES`` of the module."""

    def has(self, option: str) -> bool:
        """Tell whether it has an option, such as ``--seed``."""
        return any(option in param.opts for param in self.command.params)

    def demanded(self, parameter: Parameter, arguments: Sequence[str], nprocs: int) -> int | None:
        """Return the value of a parameter that theory demands; None if there is no theory.

        Args:
            parameter: the parameter.
            arguments: further arguments of the command line.
            nprocs: number of processes of the runs.
        """
        rule = self.theory.get(parameter.name)
        if rule is None:
            return None
        return rule({**self._options(arguments), "nprocs": nprocs})

    def samples_between(
        self, parameter: Parameter, arguments: Sequence[str]
    ) -> Callable[[int, int], float] | None:
        """Return how many samples lie between two splitters, by value and number of processes.

        Args:
            parameter: the parameter.
            arguments: further arguments of the command line.

        Returns:
            None where the module does not say.
        """
        rule = self.samples.get(parameter.name)
        if rule is None:
            return None
        options, name = self._options(arguments), parameter.name.replace("-", "_")
        return lambda value, nprocs: rule({**options, name: value, "nprocs": nprocs})

    def _options(self, arguments: Sequence[str]) -> dict[str, Any]:
        return dict(self.command.make_context(self.name, list(arguments)).params)

    def check(self, parameter: Parameter) -> None:
        """Check that the parameter is an integer option and that all its values are valid.

        Raises:
            UsageError: there is no such integer option, or a value is not valid.
        """
        option = self._option(parameter.option)
        for value in parameter.values:
            try:
                taken = option.type.convert(str(value), option, None)
            except click.UsageError as error:
                raise UsageError(
                    f"tune: {self.name} does not take {parameter.option} {value}: {error.message}"
                ) from None
            if isinstance(taken, bool) or taken != value or not isinstance(taken, int):
                raise UsageError(
                    f"tune: {parameter.option} of {self.name} does not take integers; its type is "
                    f"{option.type.name}"
                )

    def check_takes(self, options: Sequence[str]) -> None:
        """Check that it has the options by which it is told how to run.

        Raises:
            UsageError: it lacks one of them.
        """
        if lacking := [option for option in options if not self.has(option)]:
            raise UsageError(
                f"tune: {self.name} has no option {' and no '.join(lacking)}, which each run is "
                f"given; let its command take {', '.join(lacking)} and pass the value on to "
                f"bsplib.run"
            )

    def _option(self, name: str) -> click.Option:
        options = [param for param in self.command.params if isinstance(param, click.Option)]
        for option in options:
            if name in option.opts and not option.is_flag:
                return option
        known = [max(option.opts, key=len) for option in options if not option.is_flag]
        raise UsageError(
            f"tune: {self.name} has no option {name} with a value; it has {', '.join(known)}"
        )

    def run(self, arguments: Sequence[str], trace: Path) -> Run:
        """Run the application without its output, and return the recorded run.

        Args:
            arguments: arguments of its command line.
            trace: trace file to write; an earlier trace is replaced.

        Raises:
            UsageError: the arguments are not valid, the application fails, or it makes
                no run or several.
            MissingExtra, MissingExtraError: it needs an extra that is not installed.
        """
        line = [*arguments, TRACE_OPTION, str(trace)]
        command = " ".join(arguments)
        check_trace(trace)
        trace.unlink(missing_ok=True)  # a further run would be added to it
        try:
            with _silent(self.name, line):
                self.command.main(line, prog_name=self.name, standalone_mode=False)
        except (MissingExtra, MissingExtraError):
            raise  # bsp shows it without a mention of the arguments
        except click.ClickException as error:
            raise UsageError(f"tune: {self.name} {command}: {error.format_message()}") from None
        except (BspError, click.Abort) as error:
            raise UsageError(f"tune: {self.name} {command} failed: {error}") from error
        runs = read_trace(trace).runs if trace.exists() else ()
        if len(runs) != 1:
            raise UsageError(
                f"tune: {self.name} {command} recorded {len(runs)} runs; an application that is "
                "tuned has to make exactly one"
            )
        return runs[0]


def check_trace(path: Path) -> None:
    """Raise UsageError if no trace can be written at a path, as where another file is."""
    if reason := obstacle(path, TRACE):
        raise UsageError(f"tune: {reason}")


@contextlib.contextmanager
def _silent(name: str, line: Sequence[str]) -> Iterator[None]:
    """Suppress the output of the application; set ``sys.argv``, which its trace will name."""
    before = sys.argv
    sys.argv = [name, *line]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        sys.argv = before


def find_app(name: str) -> App:
    """Load an application.

    Args:
        name: name of a module, as ``bsplib.apps.sorting.sample_sort``, or path of its file.

    Raises:
        UsageError: there is no such module, or it has no click command named ``command``.
    """
    module = _load_file(Path(name)) if name.endswith(".py") else _load_module(name)
    command = getattr(module, "command", None)
    if not isinstance(command, click.Command):
        raise UsageError(f"tune: {name} has no click command named 'command'")
    said = (getattr(module, each, {}) for each in ("THEORY", "THEORY_MEANS", "SAMPLES"))
    return App(name, command, *said)


def _load_module(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the application exists, and a module that it imports does not
        raise UsageError(
            f"tune: there is no module {name}; give one, as bsplib.apps.sorting.sample_sort, or a "
            f".py file"
        ) from None
    except (ValueError, TypeError):  # a text such as ".." or ""
        raise UsageError(f"tune: {name!r} is no name of a module") from None


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"tune: there is no file {path}")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # since the suffix is .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))  # as python FILE does
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
