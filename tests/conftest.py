"""What holds for the tests of all rooms."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from bsplib import core

from .hosts.fixtures import hosts, hosts_of_the_file  # noqa: F401 - fixtures of all tests
from .scripted import Reading, Script
from .selection import LENGTHY_S, SLOW_S, is_thinned, of_the_core, quick, usual

# A shell starts its background jobs with SIGINT ignored, and programs inherit that.
# Some tests are about Ctrl-C, hence here it means what it does at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)

_PARTS = {"--quick": quick, "--core": of_the_core}
"""Options, and what they leave of all tests."""


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    """Restore where modules are looked for, which a command that a test calls may change."""
    before = list(sys.path)
    yield
    sys.path[:] = before


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses between a part of the tests and all; selection.py says which and why."""
    parser.addoption(
        "--all",
        action="store_true",
        help="Run every case of every test, and start the processes of every run anew.",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="Run one case of every test that is done at once, most of them in the simulator.",
    )
    parser.addoption(
        "--core",
        action="store_true",
        help="Run one real and one virtual case of what is marked core and done at once.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw more examples with ``--all``."""
    if config.getoption("--all"):
        os.environ.setdefault("BSP_EXAMPLES", "2")


def pytest_report_header() -> str:
    """Name the build of the core that is tested."""
    return f"core: {core.BUILD}"


@pytest.hookimpl(trylast=True)  # Hypothesis marks its tests in this hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the command does not run; see selection.py."""
    if not is_thinned(config):
        return
    chosen = [choose for name, choose in _PARTS.items() if config.getoption(name)]
    kept = (chosen or [usual])[0](items)
    if len(kept) < len(items):
        left_out = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what was collected: looking at it takes half a second."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name what takes so long that it belongs into a longer command; a busy machine may err."""
    if config.getoption("--all"):
        return
    mark, limit_s = ("lengthy", LENGTHY_S) if config.getoption("--quick") else ("slow", SLOW_S)
    for report in terminalreporter.getreports("passed"):
        if report.when == "call" and report.duration > 2 * limit_s:
            took = f"{report.duration:.1f} s: {report.nodeid}"
            terminalreporter.write_line(f"{took}; if it does so again, mark it {mark}")


@pytest.fixture(scope="session")
def script() -> type[Script]:
    """Return the maker of runs that are defined by hand."""
    return Script


@pytest.fixture(scope="session")
def read() -> type[Reading]:
    """Return the reader of call graphs by the names of their nodes."""
    return Reading
