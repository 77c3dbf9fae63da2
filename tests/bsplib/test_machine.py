"""Machines: their files, and what they price."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

import pytest

import bsplib
from bsplib.machine import Machine, known_machines, load_machine

MACHINE = """
name = "four boards"
source = "made up"
g_s_per_byte = 2e-9
l_s = 3e-5
p = 4
h = "sum"
"""


@pytest.fixture
def write(tmp_path):
    """Write a Machine file and return its path as text."""

    def write_it(text, name="machine.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_it


def test_a_file_is_a_machine(write):
    machine = load_machine(write(MACHINE))
    assert machine == Machine("four boards", "made up", g=2e-9, l=3e-5, p=4, h="sum")


def test_what_a_file_does_not_say_is_filled_in(write):
    text = "".join(line + "\n" for line in MACHINE.splitlines() if line[:1] not in ("p", "h"))
    assert load_machine(write(text)) == Machine("four boards", "made up", 2e-9, 3e-5, None, "max")


def test_figures_may_be_integers_and_zero(write):
    machine = load_machine(write(MACHINE.replace("2e-9", "0").replace("3e-5", "0")))
    assert (machine.g, machine.l) == (0.0, 0.0)
    assert isinstance(machine.g, float)


@pytest.mark.parametrize("entry", ["name", "source", "g_s_per_byte", "l_s"])
def test_a_missing_entry_is_named(write, entry):
    path = write("\n".join(line for line in MACHINE.splitlines() if not line.startswith(entry)))
    with pytest.raises(
        bsplib.UsageError, match=rf"^machine: {re.escape(path)} has no entry '{entry}'$"
    ):
        load_machine(path)


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ("g_s_per_byte", "-1e-9", r"g is -1e-09; it may be 0 to 1 second"),
        ("l_s", "-0.5", r"l is -0.5; it may be 0 to 1 second"),
        ("l_s", "1", r"l is 1.0; it may be 0 to 1 second"),
        ("g_s_per_byte", "nan", r"g is nan; it may be 0 to 1 second"),
        ("g_s_per_byte", "inf", r"g is inf; it may be 0 to 1 second"),
        ("g_s_per_byte", '"fast"', "could not convert string to float: 'fast'"),
        ("g_s_per_byte", "[1]", "float"),
        ("h", '"mean"', "h is 'mean'; it may be 'max' or 'sum'"),
        ("p", '"many"', "invalid literal for int"),
        ("p", "0", "p is 0"),
        ("p", "-3", "p is -3"),
    ],
)
def test_a_wrong_entry_is_one_sentence(write, entry, value, words):
    path = write(re.sub(rf"(?m)^{entry} = .*$", f"{entry} = {value}", MACHINE))
    with pytest.raises(bsplib.UsageError, match=rf"^machine: {re.escape(path)}: .*{words}"):
        load_machine(path)


@pytest.mark.parametrize("text", ["name = ", "[[[", "name = 'a'\nname = 'b'", "\x00"])
def test_a_file_that_is_no_toml_is_one_sentence(write, text):
    path = write(text)
    with pytest.raises(bsplib.UsageError, match=rf"^machine: {re.escape(path)}: "):
        load_machine(path)


def test_a_file_that_is_no_text_is_one_sentence(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(bsplib.UsageError, match=r"^machine: .*machine\.toml: .*utf-8"):
        load_machine(str(path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "none.toml"
    with pytest.raises(bsplib.UsageError, match=rf"^machine: there is no file {path}$"):
        load_machine(str(path))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(bsplib.UsageError, match="there is no file"):
        load_machine(str(tmp_path / "..toml"))


@pytest.mark.parametrize("name", ["abacus", "", "README", "../machine", "IBM-SP2-PVM", "ideal "])
def test_an_unknown_name_is_told_the_known_ones(name):
    with pytest.raises(bsplib.UsageError) as raised:
        load_machine(name)
    assert str(raised.value) == (
        f"machine: {name!r} is none of {', '.join(known_machines())}; name one of them or a "
        f".toml file"
    )


def test_the_machines_that_come_along_can_be_loaded_and_name_their_source():
    names = known_machines()
    assert names == sorted(names)
    assert {"ideal", "shared-memory", "ibm-sp2-pvm"} <= set(names)
    for name in names:
        machine = load_machine(name)
        assert machine.name
        assert machine.source
        assert machine.price(10**6) >= machine.l >= 0


def test_every_file_that_comes_along_has_known_entries_only():
    for name in known_machines():
        text = (resources.files("bsplib") / "machines" / f"{name}.toml").read_text("utf-8")
        known = {"name", "source", "g_s_per_byte", "l_s", "p", "h"}
        assert tomllib.loads(text).keys() <= known


# -- prices ---------------------------------------------------------------------------------------


def test_a_superstep_costs_g_h_and_l():
    machine = Machine("m", "made up", g=2e-9, l=3e-5)
    assert machine.price(0) == 3e-5
    assert machine.price(1_000_000) == pytest.approx(2e-3 + 3e-5)
    assert load_machine("ideal").price(10**12) == 0


def test_a_relation_is_the_greater_or_the_sum_of_in_and_out():
    greater = Machine("m", "made up", g=1e-9, l=0.0)
    both = Machine("m", "made up", g=1e-9, l=0.0, h="sum")
    assert [greater.relation(*bytes_) for bytes_ in ((0, 0), (3, 5), (5, 3))] == [0, 5, 5]
    assert [both.relation(*bytes_) for bytes_ in ((0, 0), (3, 5), (5, 3))] == [0, 8, 8]


def test_two_stages_pay_beyond_l_over_p_g_minus_2_g():
    """Equation 8 by hand: g = 1/1024, l = 1/4 (exact), p = 6: n > 0.25 / (4 / 1024) = 64."""
    machine = Machine("m", "made up", g=1 / 1024, l=0.25)
    assert not machine.two_stages_pay(63, 6)
    assert not machine.two_stages_pay(64, 6)
    assert machine.two_stages_pay(65, 6)
    assert not machine.two_stages_pay(256, 3)  # n > 0.25 * 1024
    assert machine.two_stages_pay(257, 3)


@pytest.mark.parametrize("processes", [1, 2])
def test_two_stages_never_pay_for_two_processes(processes):
    machine = Machine("m", "made up", g=1e-3, l=0.0)
    assert not machine.two_stages_pay(10**9, processes)


def test_two_stages_do_not_pay_where_communication_is_free():
    assert not load_machine("ideal").two_stages_pay(10**9, 100)
    assert not Machine("m", "made up", g=0.0, l=1e-3).two_stages_pay(10**9, 100)


def test_two_stages_of_nothing_do_not_pay():
    assert not Machine("m", "made up", g=1e-9, l=0.0).two_stages_pay(0, 8)


# -- a run on a Machine ---------------------------------------------------------------------------


@pytest.mark.procs(2)
def test_a_program_can_ask_for_its_machine(run, write):
    assert run(lambda bsp: bsp.machine.name, machine=write(MACHINE)) == ["four boards"] * 2
    given = Machine("given", "made up", g=1e-9, l=0.0)
    assert run(lambda bsp: bsp.machine, machine=given) == [given] * 2


@pytest.mark.procs(2)
def test_a_run_on_an_unknown_machine_is_refused(run):
    with pytest.raises(bsplib.UsageError, match=r"^machine: 'abacus' is none of"):
        run(lambda bsp: None, machine="abacus")
