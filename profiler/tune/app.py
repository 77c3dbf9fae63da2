"""The application that is tuned: a module with a click command named ``command``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from bsplib.errors import BspError, UsageError
from bsplib.recording.trace import read_trace

if TYPE_CHECKING:
    from bsplib.recording.records import Run
    from profiler.tune.parameter import Parameter


@dataclass(frozen=True)
class App:
    """An application that can be run with options, and recorded."""

    name: str
    command: click.Command

    def check(self, parameter: Parameter) -> None:
        """Check that the parameter is an integer option that takes all its values.

        Raises:
            UsageError: it is not, or takes one of them not.
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
                    f"tune: {parameter.option} of {self.name} is no integer option; it takes "
                    f"{option.type.name}"
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
        """Run the application, silently, and return what was recorded.

        Args:
            arguments: of its command line.
            trace: file that it is recorded in; what was there is replaced.

        Raises:
            UsageError: it does not take the arguments, or does not end well, or makes
                another number of runs than one.
        """
        line = [*arguments, "--profile", str(trace)]
        said = " ".join(arguments)
        trace.unlink(missing_ok=True)  # a further run would be added to it
        try:
            with _silent(self.name, line):
                self.command.main(line, prog_name=self.name, standalone_mode=False)
        except click.ClickException as error:
            raise UsageError(f"tune: {self.name} {said}: {error.format_message()}") from None
        except (BspError, click.Abort) as error:
            raise UsageError(f"tune: {self.name} {said} failed: {error}") from error
        runs = read_trace(trace).runs if trace.exists() else ()
        if len(runs) != 1:
            raise UsageError(
                f"tune: {self.name} {said} recorded {len(runs)} runs; what is tuned makes one"
            )
        return runs[0]


@contextlib.contextmanager
def _silent(name: str, line: Sequence[str]) -> Iterator[None]:
    """Keep to oneself what the application prints; its trace says what it was called."""
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
        name: of a module, as ``apps.sorting.sample_sort``, or the path of its file.

    Raises:
        UsageError: there is none, or it has no click command named ``command``.
    """
    module = _load_file(Path(name)) if name.endswith(".py") else _load_module(name)
    command = getattr(module, "command", None)
    if not isinstance(command, click.Command):
        raise UsageError(f"tune: {name} has no click command named 'command'")
    return App(name, command)


def _load_module(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the application is there, and lacks something itself
        raise UsageError(
            f"tune: there is no module {name}; name one as apps.sorting.sample_sort, or a .py file"
        ) from None
    except (ValueError, TypeError):  # not even a name: "..", ""
        raise UsageError(f"tune: {name!r} is no name of a module") from None


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"tune: there is no file {path}")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the ending is that of Python
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))  # as python FILE does
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
