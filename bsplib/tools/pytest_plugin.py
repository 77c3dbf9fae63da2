"""The pytest plugin: the fixture ``bsp_trace``, and baselines of h and supersteps.

pytest loads it wherever bsplib is installed. It imports numpy, the runtime and the profiler only
when a test uses the fixture, or an option asks for a comparison::

    def test_the_sort_is_balanced(bsp_trace):
        bsplib.run(sort, 1000, nprocs=4, backend="sim")
        assert bsp_trace.figures("sort").supersteps == 3

``pytest --bsp-baseline FILE`` compares h and the number of supersteps of every test that uses
the fixture with those in the file; ``--bsp-update`` writes them into it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bsplib.output_file import write_text
from bsplib.visible import as_command, visible

if TYPE_CHECKING:
    from bsplib.recording.records import Run


class BspTrace:
    """The runs of one test, recorded without being asked for.

    Every call of ``bsplib.run`` and every run of a ``bsplib.Pool`` in the test is recorded, on any
    backend, except those to which the test gives a file by ``profile=``.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        """The trace file; ``bsp view`` shows it. It exists after the first run."""

    def run(self, main: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
        """Call ``bsplib.run`` and return its results, by pid.

        Args:
            main: the program.
            *args: given to ``main``.
            **options: as for ``bsplib.run``, and what is given to ``main`` by keyword.

        Raises:
            Exception: as ``bsplib.run``.
        """
        from bsplib.running.launch import run  # noqa: PLC0415  # only where it is used

        return run(main, *args, **options)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs so far, in order."""
        from bsplib.recording.trace import read_trace  # noqa: PLC0415  # only where it is used

        return read_trace(self.file).runs if self.file.exists() else ()

    def figures(self, name: str | None = None, *, run: int = -1) -> Any:
        """Return time, loss, h, supersteps and balance of a run or of a part of it.

        Args:
            name: a function, such as ``Solver.step`` or ``step``, or a cost centre, such as
                ``cg.py:12``; the whole run if None.
            run: position in ``runs``; default: the last one.

        Returns:
            A ``bsplib.profiler.rows.Row``: its ``supersteps``, ``h`` and ``h_mean`` (bytes) repeat
            exactly, its ``time_s``, ``loss_s`` and ``balance`` only on virtual processors whose
            computation is charged.

        Raises:
            LookupError: there is no such run, or no such node in it.
        """
        from bsplib.profiler.compare.comparison import figures_of  # noqa: PLC0415  # only where it is used

        return figures_of(self._chosen(run), name)

    def compare(self, before: int = 0, after: int = -1) -> Any:
        """Compare two runs of the test.

        Args:
            before: position in ``runs``; default: the first.
            after: position in ``runs``; default: the last.

        Returns:
            A ``bsplib.profiler.compare.comparison.Comparison``: for example
            ``comparison.whole.change("h")`` is a number of bytes.

        Raises:
            LookupError: there is no such run.
        """
        from bsplib.profiler.compare.comparison import compare_runs  # noqa: PLC0415  # only where it is used

        return compare_runs(self._chosen(before), self._chosen(after))

    def _chosen(self, position: int) -> Run:
        runs = self.runs
        if not -len(runs) <= position < len(runs):
            raise LookupError(f"there is no run {position}: the test has made {len(runs)}")
        return runs[position]


_TRACE = pytest.StashKey[BspTrace]()


@pytest.fixture
def bsp_trace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BspTrace]:
    """Record every bsplib.run of the test; see bsplib.tools.pytest_plugin.BspTrace."""
    from bsplib.running.options import overriding  # noqa: PLC0415  # only where it is used

    trace = BspTrace(tmp_path_factory.mktemp("bsp_trace") / "trace.bsp")
    request.node.stash[_TRACE] = trace
    with overriding(profile_else=str(trace.file)):
        yield trace


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("bsplib")
    group.addoption(
        "--bsp-baseline",
        metavar="FILE",
        help="Compare h and supersteps of each test that uses bsp_trace with this file.",
    )
    group.addoption(
        "--bsp-update",
        action="store_true",
        help="Write the figures of the tests that pass into the file of --bsp-baseline.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the comparison with a baseline, if one is given."""
    name, update = config.getoption("--bsp-baseline"), config.getoption("--bsp-update")
    if name is None:
        if update:
            raise pytest.UsageError("--bsp-update needs --bsp-baseline FILE, the file to write")
        return
    if update and config.getoption("numprocesses", None):
        raise pytest.UsageError("--bsp-update writes one file: run it without -n of pytest-xdist")
    file = config.invocation_params.dir / name
    config.pluginmanager.register(_Baseline(file, update=update), "bsp-baseline")


class _Baseline:
    """Holds each test against a file, or writes its figures into it."""

    def __init__(self, file: Path, *, update: bool) -> None:
        self._file = file
        self._update = update
        self._known = self._read()
        self._seen: dict[str, Any] = {}

    def _read(self) -> dict[str, Any]:
        from bsplib.profiler.compare.baseline import load  # noqa: PLC0415  # only where it is used

        try:
            return load(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self._update:
                return {}
            raise pytest.UsageError(
                f"--bsp-baseline: there is no file {self._file}; --bsp-update writes it"
            ) from None
        except (OSError, ValueError) as error:
            raise pytest.UsageError(visible(f"--bsp-baseline: {self._file}: {error}")) from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Hold the runs of a test that passed against the baseline."""
        result = yield
        trace = item.stash.get(_TRACE, None)
        if trace is not None:
            self._hold(item.nodeid, trace)
        return result

    def _hold(self, test: str, trace: BspTrace) -> None:
        from bsplib.profiler.compare.baseline import changes, facts_of  # noqa: PLC0415

        # How far a run comes that ends in an error may differ from time to time.
        self._seen[test] = [facts_of(run) for run in trace.runs if run.complete]
        if self._update:
            return
        if test not in self._known:
            how = "run pytest with --bsp-update to add them, and commit the file"
            pytest.fail(f"{self._file.name} has no figures of this test: {how}", pytrace=False)
        if found := changes(self._known[test], self._seen[test]):
            pytest.fail(self._message(found, trace), pytrace=False)

    def _message(self, found: list[str], trace: BspTrace) -> str:
        return "\n".join(
            [
                f"h or supersteps are not those of {self._file.name}:",
                *(f"  {visible(change)}" for change in found),
                f"See the runs by: {as_command('bsp', 'view', trace.file)}",
                "If this is meant, run pytest with --bsp-update, and commit the file.",
            ]
        )

    def pytest_sessionfinish(self) -> None:
        """Write the figures of this session into the file, beside those of other tests."""
        from bsplib.profiler.compare.baseline import BASELINE, dump  # noqa: PLC0415  # only where it is used

        if self._update and self._seen:
            write_text(self._file, dump(self._known | self._seen), BASELINE)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was written."""
        if self._update:
            number = len(self._seen)
            changed = sum(self._known.get(test) != facts for test, facts in self._seen.items())
            tests = "1 test" if number == 1 else f"{number} tests"
            text = f"figures of {tests} written, {changed} of them changed"
            terminalreporter.write_line(f"{self._file}: {text}")
