"""What a probe measured: its curves, its prices by hand, its text in a file."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest

import bsplib
from bsplib.machine import Machine, load_machine
from bsplib.machine.measured import Curve, HRelation, Measured

LINE = Curve((100, 200, 400), (10.0, 20.0, 60.0))


@pytest.mark.parametrize(
    ("nbytes", "seconds"),
    [(0, 10), (100, 10), (150, 15), (200, 20), (300, 40), (400, 60), (500, 80)],
)
def test_a_curve_has_lines_between_its_knots_and_goes_on_behind_the_last(nbytes, seconds):
    assert LINE.at(nbytes) == pytest.approx(seconds)


def test_a_curve_takes_arrays():
    assert LINE.at(np.array([150, 500])) == pytest.approx([15, 80])


@pytest.mark.parametrize(
    ("nbytes", "seconds"),
    [((1,), (1.0,)), ((1, 1), (1.0, 2.0)), ((1, 2), (1.0,)), ((-1, 2), (0, 1))],
)
def test_what_is_no_curve_is_refused(nbytes, seconds):
    with pytest.raises(ValueError, match=r"curve"):
        Curve(nbytes, seconds)


TWO = Measured(
    2,
    empty=1.0,
    call=0.5,
    slowdown=1.2,
    patterns={"exchange": LINE, "all-to-all": Curve((0, 100), (2.0, 32.0))},
)
FOUR = Measured(4, empty=3.0, slowdown=2.0, patterns={"all-to-all": Curve((0, 100), (10.0, 70.0))})
PROBED = Machine("m", "x", g=1e-9, l=1e-6, measured=(Measured(1, empty=0.25), TWO, FOUR))


def parts(relation, pattern=None, nprocs=2):
    transfer_s, sync_s = PROBED.parts_of(relation, pattern, nprocs)
    return float(transfer_s), sync_s


def test_a_superstep_costs_the_time_of_its_pattern_and_further_calls():
    assert parts(HRelation(0, 0)) == (0, 1)
    assert parts(HRelation(150, 1), "exchange") == (15 - 1, 1)
    assert parts(HRelation(150, 5), "exchange") == (15 + 4 * 0.5 - 1, 1)
    assert parts(HRelation(10, 1), None) == (5 - 1, 1)
    assert parts(HRelation(10, 0), None) == (5 - 1, 1)  # of a process that only receives


def test_times_between_measured_numbers_of_processes_are_interpolated():
    assert parts(HRelation(0), nprocs=1) == (0, 0.25)
    assert parts(HRelation(0), nprocs=3) == (0, 2)
    assert parts(HRelation(100, 1), nprocs=3) == ((32 + 70) / 2 - 2, 2)
    assert parts(HRelation(100, 1), nprocs=9) == (70 - 3, 3)  # the nearest
    slowdowns = [PROBED.slowdown(count) for count in (1, 2, 3, 4, 9)]
    assert slowdowns == pytest.approx([1, 1.2, 1.6, 2, 2])


@pytest.mark.parametrize(("cores", "slowdowns"), [(2, (2, 4, 8)), (4, (2, 4, 8)), (8, (2, 2, 4))])
def test_more_processes_than_were_measured_share_the_cores(cores, slowdowns):
    machine = replace(PROBED, cores=cores)
    assert [machine.slowdown(count) for count in (4, 8, 16)] == pytest.approx(slowdowns)


def test_all_calls_of_an_all_to_all_are_in_its_time():
    four = Measured(4, empty=0.0, call=1.0, patterns={"all-to-all": Curve((0, 100), (10.0, 70.0))})
    assert float(four.seconds(HRelation(100, 3), "all-to-all")) == 70
    assert float(four.seconds(HRelation(100, 5), "all-to-all")) == 72


def test_a_machine_without_measured_times_costs_g_h_and_l():
    plain = Machine("m", "x", g=2.0, l=3.0)
    assert plain.parts_of(HRelation(10, 4), None, 7) == (20, 3)
    assert plain.slowdown(7) == 1


def test_g_or_l_given_after_the_name_replace_what_was_measured(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(PROBED.text())
    assert load_machine(f"{path}").measured
    assert load_machine(f"{path}:speed=1e9").measured
    assert not load_machine(f"{path}:l=1e-5").measured


def test_what_was_measured_is_read_again_from_a_file_and_from_a_trace(tmp_path):
    path = tmp_path / "m.toml"
    here = Machine(*("m", "x", 1e-9, 1e-6), host="node7", cores=2, measured=PROBED.measured)
    path.write_text(here.text())
    assert path.read_text().startswith("version = 5\n")
    assert load_machine(str(path)) == here
    assert Machine.of(json.loads(json.dumps(asdict(here)))) == here


@pytest.mark.parametrize("version", [2, 4])
def test_a_file_of_an_earlier_version_is_read(tmp_path, version):
    path = tmp_path / "m.toml"
    path.write_text(PROBED.text().replace("version = 5", f"version = {version}", 1))
    assert load_machine(str(path)).measured == PROBED.measured


GOOD = """
name = "m"
source = "x"
g_s_per_byte = 0

[[measured]]
p = 2
empty_s = 1e-6
patterns.exchange = { bytes = [0, 8], seconds = [0.0, 1e-6] }
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "name",
            "version = 6\nname",
            "the file has version 6 of the format; this bsplib reads",
        ),
        ("p = 2", "p = 0", "p of measured is 0; it has to be a whole number"),
        ("p = 2", "q = 2", "there is no entry 'q'"),
        ("p = 2\n", "", "has no entry 'p'"),
        ("empty_s = 1e-6", "", "has no entry 'empty_s'"),
        (
            "empty_s = 1e-6",
            "empty_s = -1.0",
            "empty of measured is -1.0; it has to be from 0 to 1000",
        ),
        ("empty_s = 1e-6", "empty_s = nan", "empty of measured is nan; it has to be"),
        ("[0, 8]", "[8, 8]", "the bytes of a curve have to ascend"),
        ("[0, 8]", "[8]", "a curve has at least two knots"),
        ("[0, 8]", '"08"', "nbytes of exchange is '08'; it has to be a list"),
        ("[0, 8]", "[0, 8.5]", "nbytes of exchange has 8.5; it has to have whole numbers"),
        ("[0, 8]", "[0, inf]", "nbytes of exchange has inf; it has to have whole numbers"),
        ("[[measured]]", "[measured]", "measured is .* has to be a list"),
        (
            "p = 2",
            "p = 2\nslowdown = 0",
            "slowdown of measured is 0.0; it has to be a number greater",
        ),
        (
            "p = 2",
            "p = 2\npatterns.ring = {bytes = [0, 1], seconds = [0, 0]}",
            "there is no 'ring' in patterns of measured",
        ),
        ("p = 2", "p = 2\nempty_s = 1.0\n[[measured]]\np = 1", "in ascending order of p"),
    ],
)
def test_a_wrong_entry_is_one_sentence(tmp_path, old, new, words):
    path = tmp_path / "m.toml"
    path.write_text(GOOD)
    assert load_machine(str(path)).measured[0].p == 2
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(bsplib.UsageError, match=rf"^machine: {re.escape(str(path))}:? .*{words}"):
        load_machine(str(path))


ONE_TO_ALL, ALL_TO_ONE = Curve((0, 100), (10.0, 20.0)), Curve((0, 100), (100.0, 200.0))
FAN = Measured(
    3,
    empty=1.0,
    patterns={
        "exchange": LINE,
        "one-to-all": ONE_TO_ALL,
        "personalised-one-to-all": ONE_TO_ALL,
        "all-to-one": ALL_TO_ONE,
    },
)


@pytest.mark.parametrize("whole", [True, False])
def test_the_values_of_a_get_are_priced_as_sent_by_their_owner(whole):
    """Both ways of a get: as a whole array, and as words."""
    machine = Machine("m", "x", g=1e-9, l=1e-6, measured=(FAN,))

    def main(bsp, fan_out):
        bsp.charge(0)
        x = bsp.zeros(1)
        bsp.sync()
        began = bsp.time()
        if bsp.pid and fan_out and whole:
            bsp.get(0, x)
        elif bsp.pid and fan_out:
            bsp.get_at(0, [0], x)
        elif bsp.pid:
            bsp.put_at(0, [0], [1.0], x)
        bsp.sync()
        return bsp.time() - began

    fan_out = bsplib.run(main, True, nprocs=3, backend="sim", machine=machine)[0]
    fan_in = bsplib.run(main, False, nprocs=3, backend="sim", machine=machine)[0]
    assert 10 < fan_out < 20
    assert 100 < fan_in < 200
