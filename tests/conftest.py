"""What holds for the tests of all rooms."""

from __future__ import annotations

import signal

import pytest

# A shell starts its background jobs with SIGINT ignored, and programs inherit that.
# Some tests are about Ctrl-C, hence here it means what it does at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)

USUAL_COUNTS = (1, 3)
"""Numbers of real processes that are enough to find most faults."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses between the quick half of the tests and all."""
    parser.addoption(
        "--all",
        action="store_true",
        help="Run the slow tests too, and all numbers of real processes, not only 1 and 3.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, and runs of many real processes, which take most of the time.

    A test that real processes take with neither 1 nor 3 of them keeps the least number.
    Virtual processors are tested with all numbers, and so is what is named by its node id.
    """
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    left_out = {item for item in items if item.get_closest_marker("slow")}
    alike: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        nprocs = parameters.pop("nprocs", None)
        if nprocs is not None and parameters.get("backend") == "shm":
            place = item.nodeid.partition("[")[0]
            alike.setdefault((place, repr(sorted(parameters.items()))), []).append(item)
    for several in alike.values():
        by_count = {item.callspec.params["nprocs"]: item for item in several}  # type: ignore[attr-defined]
        kept = [count for count in by_count if count in USUAL_COUNTS] or [min(by_count)]
        left_out.update(item for count, item in by_count.items() if count not in kept)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
