"""The real code of shm does what it should in whatever order its processes run.

The processes are greenlets of an interpreter with the interpreted core; see ``schedules.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.processes import run_python

pytestmark = pytest.mark.lengthy
EXPLORER = Path(__file__).with_name("schedules.py")
DEFECTS = {
    "free-replies-at-close": "leaving",
    "answer-in-the-next-buffer": "root",
    "free-send-buffers-at-close": "next group",
    "read-inline-late": "root",
    "free-at-the-end-of-a-superstep": "root",
    "free-before-others-have-left": "next group",
    "take-others-for-delivered": "root",
    "use-one-buffer": "root",
    "end-payloads-a-meeting-early": "leaving",
    "free-payloads-with-their-lease": "root",
    "free-payloads-after-a-run": "Pool",
}
"""Each with the next event of programs that find it."""
SOON_FOUND = "take-others-for-delivered"
EVERY = {SOON_FOUND: 12, "free-replies-at-close": 4}
"""One of how many programs is run. The last defect is found by some sizes and partners only; with
one of 3, as for the others, the partner is always the same."""


def explore(*options):
    """Run programs in many orders; return what was found."""
    done = run_python(EXPLORER, *options, timeout=900)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_programs_of_every_cell_are_right_in_random_orders():
    """A cell is a way, a duty, a next event and an end; what is not entered is impossible."""
    found = explore("--random", 595)
    assert found["examples"] == []
    assert [cell for cell, times in found["entered"].items() if not times] == []
    assert len(found["entered"]) + len(found["impossible"]) == 2 * 6 * 5 * 2
    assert all(found["impossible"].values())


@pytest.mark.slow
def test_some_programs_are_right_in_all_orders_with_two_preemptions():
    found = explore("--preemptions", 2, "--event", "Pool", "--every", 53)
    assert found["examples"] == []
    assert found["not_complete"] == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("event", ["root", "sub-group", "leaving", "next group", "Pool"])
def test_programs_are_right_in_orders_with_few_preemptions(event):
    options = ("--preemptions", 2, "--seconds", 10, "--every", 10, "--event", event)
    assert explore(*options)["examples"] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_programs_are_right_in_thousands_of_random_orders():
    assert explore("--random", 10_000)["examples"] == []


@pytest.mark.parametrize(
    ("defect", "event"),
    [
        pytest.param(defect, event, marks=[] if defect == SOON_FOUND else pytest.mark.slow)
        for defect, event in DEFECTS.items()
    ],
)
def test_a_defect_that_is_put_back_is_found(defect, event):
    options = ("--preemptions", 2, "--seconds", 0.2, "--every", EVERY.get(defect, 3))
    found = explore("--defect", defect, "--event", event, *options)
    assert found["wrong"] > 0
    assert found["pruned"] > 0  # without it there are too many orders: time must be in no state


@pytest.mark.slow
@pytest.mark.parametrize(("defect", "event"), DEFECTS.items())
def test_a_defect_that_is_put_back_is_found_in_random_orders(defect, event):
    assert explore("--defect", defect, "--event", event, "--random", 95)["wrong"] > 0
