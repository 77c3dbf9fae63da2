"""The real code of shm does what it should in whatever order its processes run.

The processes are greenlets of an interpreter with the interpreted core; see ``schedules.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy
EXPLORER = Path(__file__).with_name("schedules.py")
DEFECTS = {
    "free-replies-at-close": "leaving",
    "free-at-the-end-of-a-superstep": "root",
    "free-before-others-have-left": "next group",
    "take-others-for-settled": "root",
    "use-one-box": "root",
}
"""Each with the next event of programs that find it."""


def explore(*options):
    """Run programs in many orders; return what was found."""
    command = [sys.executable, str(EXPLORER), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_programs_of_every_cell_are_right_in_turn_and_in_random_orders():
    """A cell is a way, a duty, a next event and an end; what is not entered is impossible."""
    found = explore("--deviations", 0, "--every", 2, "--random", 100)
    assert found["examples"] == []
    assert [cell for cell, times in found["entered"].items() if not times] == []
    assert len(found["entered"]) + len(found["impossible"]) == 2 * 5 * 5 * 2
    assert all(found["impossible"].values())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("event", ["root", "sub-group", "leaving", "next group", "Pool"])
def test_programs_are_right_in_all_orders_with_one_deviation_from_taking_turns(event):
    assert explore("--deviations", 1, "--every", 10, "--event", event)["examples"] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_programs_are_right_in_thousands_of_random_orders():
    assert explore("--random", 10_000)["examples"] == []


@pytest.mark.parametrize(
    ("defect", "event"),
    [
        pytest.param(defect, event, marks=[] if number == 0 else pytest.mark.slow)
        for number, (defect, event) in enumerate(DEFECTS.items())
    ],
)
def test_a_defect_that_is_put_back_is_found(defect, event):
    found = explore("--defect", defect, "--event", event, "--deviations", 0, "--random", 65)
    assert found["wrong"] > 0
