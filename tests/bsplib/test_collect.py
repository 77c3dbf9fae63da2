"""Records that a process left are taken up to the first one whose numbers are out of range."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.recording.collect import sound_rows
from bsplib.recording.records import MAX_NUMBER, NOT_MEASURED, RECORD

GROUPS, STACKS = 2, 3


def number_kept(name, value):
    """How many of four records are kept if the third has this number."""
    records = np.zeros(4, RECORD)
    records[name][2] = value
    return len(sound_rows(records, GROUPS, STACKS))


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("group", 0, GROUPS - 1),
        ("stack", 0, STACKS - 1),
        ("start", 0, MAX_NUMBER),
        ("comp_cpu", NOT_MEASURED, None),
    ],
)
def test_records_are_kept_before_the_first_number_out_of_range(name, least, most):
    assert number_kept(name, least) == 4
    assert number_kept(name, least - 1) == 2
    if most is not None:
        assert number_kept(name, most) == 4
        assert number_kept(name, most + 1) == 2
