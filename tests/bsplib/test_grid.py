"""Ranges of values on a command line, and all their combinations."""

from __future__ import annotations

import pytest

from bsplib.errors import UsageError
from bsplib.experiments.grid import combinations, read_setting, read_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", (3,)),
        ("1,2,4", (1, 2, 4)),
        ("1:16:x2", (1, 2, 4, 8, 16)),
        ("2^10:2^12:*2", (1024, 2048, 4096)),
        ("1:10:+4", (1, 5, 9)),
        ("1:3,8", (1, 2, 3, 8)),
        ("0.5:2:x2", (0.5, 1.0, 2.0)),
        ("-2:2:+2", (-2, 0, 2)),
    ],
)
def test_values_are_read(text, values):
    assert read_values("--set N", text) == values


@pytest.mark.parametrize(
    "text", ["", "1,,2", "1:8:2", "0:8:x2", "1:8:x1", "1:8:+0", "nan", "1:x:2"]
)
def test_values_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match=r"^--set N "):
        read_values("--set N", text)


def test_combinations_are_all_of_them():
    known = dict(map(read_setting, ["a=1,2", "b=3,4"]))
    assert combinations(known) == [
        {"a": 1, "b": 3},
        {"a": 1, "b": 4},
        {"a": 2, "b": 3},
        {"a": 2, "b": 4},
    ]
    assert combinations({}) == [{}]
