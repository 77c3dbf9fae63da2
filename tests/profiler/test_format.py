from __future__ import annotations

import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import Node, Summary
from bsplib.profiler.rates import Rates


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0, "0 s"),
        (1e-9, "1.00 ns"),
        (0.25e-9, "0.25 ns"),
        (12.34e-9, "12.3 ns"),
        (999.4e-9, "999 ns"),
        (999.6e-9, "1.00 µs"),
        (1.349e-3, "1.35 ms"),
        (0.0999, "99.9 ms"),
        (0.09996, "100 ms"),
        (0.9996, "1.00 s"),
        (9.996, "10.0 s"),
        (19.48, "19.5 s"),
        (999.6, "1000 s"),
        (12345.6, "12346 s"),
    ],
)
def test_times_have_three_digits_and_a_sensible_unit(value_s, text):
    assert fmt.seconds(value_s) == text


@pytest.mark.parametrize(
    ("value_bytes", "text"),
    [(0, "0 B"), (7, "7 B"), (999, "999 B"), (999.6, "1.00 kB"), (1000, "1.00 kB"),
     (1_349_000, "1.35 MB"), (2.5e9, "2.50 GB"), (3e15, "3000 TB")],
)  # fmt: skip
def test_sizes_have_three_digits_and_decimal_units(value_bytes, text):
    assert fmt.size(value_bytes) == text


def test_a_summary_is_written_as_maximum_and_percentages():
    assert fmt.summary(Summary(1.349e-3, 0.162e-3, 0.094e-3, ()), "comp") == "1.35 ms (12% | 7%)"
    assert fmt.summary(Summary(2048, 2048, 1024, ()), "h") == "2.05 kB (100% | 50%)"


def test_a_summary_of_nothing_has_no_percentages():
    assert fmt.summary(Summary(0, 0, 0, ()), "idle") == "0 s"
    assert fmt.summary(Summary(0, 0, 0, ()), "h") == "0 B"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe <lambda> [red]", "Größe <lambda> [red]"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("abc\u202edef", r"abc\u202edef"),  # right-to-left override
        ("caf\udce9", r"caf\udce9"),  # an undecodable byte of a file name
        ("a\u200bb\xa0c", r"a\u200bb\xa0c"),  # a space that is none, one that does not break
    ],
)
def test_what_does_not_print_is_made_visible(text, shown):
    assert fmt.visible(text) == shown


@pytest.mark.parametrize(
    ("sync", "shown"),
    [("", "a\\nb"), ("sync", "a\\nb"), ("end", "a\\nb (end)"), ("oblsync", "a\\nb (oblsync)")],
)
def test_a_label_is_one_line_and_says_which_kind_of_sync(sync, shown):
    assert fmt.label(Node("n0", "cost_centre", "a\nb", "f.py", 3, sync)) == shown


def test_a_small_price_of_a_byte_keeps_its_digits():
    assert "g = 0.00123 ns for each byte" in Rates(g=1.23e-12, l=1e-6, source="x").sentence()
