"""Machines: their files, and what they price."""

from __future__ import annotations

import json
import math
import re
import tomllib
from dataclasses import asdict
from importlib import resources

import pytest

import bsplib
from bsplib.machine import Machine, Pattern, known_machines, load_machine

MACHINE = """
name = "four boards"
source = "made up"
g_s_per_byte = 2e-9
l_s = 3e-5
p = 4
h = "sum"
"""

FULL = """
name = "eight boards"
source = "made up"
p = 8
word_bytes = 4
speed_flop_per_s = 2e9
g_s_per_word = 2e-9
l_s = 3e-5

[patterns.ping-pong]
g_s_per_word = 8e-9
L_s = 1e-4

[patterns.all-to-all]
g_s_per_byte = 1e-9
L_s = -1e-5

[sources]
speed = "a data sheet"
ping-pong = "made up later"
"""

HOSTS = f"""{MACHINE}
[inside]
g_s_per_word = 8e-10
l_s = 2e-6

[sources]
inside = "made up later"
"""


@pytest.fixture
def write(tmp_path):
    """Write a Machine file and return its path as text."""

    def write_it(text, name="machine.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_it


def test_a_file_may_say_all_that_a_machine_has(write):
    assert load_machine(write(FULL)) == Machine(
        "eight boards",
        "made up",
        g=5e-10,
        l=3e-5,
        p=8,
        speed=2e9,
        word_bytes=4,
        patterns={"ping-pong": Pattern(2e-9, 1e-4), "all-to-all": Pattern(1e-9, -1e-5)},
        sources={"speed": "a data sheet", "ping-pong": "made up later"},
    )


def test_a_machine_can_be_written_and_read_again(write):
    cluster = f"{HOSTS}ping-pong = 'x'\n".replace("p = 4", "nodes = 2\ncores = 4")
    for text in (MACHINE, FULL, HOSTS, cluster, 'name = "bare"\nsource = "x"\ng_s_per_byte = 0\n'):
        machine = load_machine(write(text))
        assert load_machine(write(machine.text(), "again.toml")) == machine


def test_a_name_that_turns_what_a_terminal_shows_is_written_escaped_and_read_back(write):
    machine = Machine("four\u202egnp boards\x9f", "by hand", g=1e-9, l=1e-6)
    assert all(char.isprintable() or char == "\n" for char in machine.text())
    assert load_machine(write(machine.text())) == machine


def test_what_is_written_has_four_digits_and_units(write):
    machine = Machine("m", 'a "source"', g=1 / 3e9, l=None, speed=1.23456789e9)
    assert tomllib.loads(machine.text()) == {
        "version": 5,
        "name": "m",
        "source": 'a "source"',
        "h": "max",
        "word_bytes": 8,
        "speed_flop_per_s": 1.235e9,
        "g_s_per_byte": 3.333e-10,
    }


@pytest.mark.parametrize("entry", ["name", "source", "g_s_per_byte"])
def test_a_missing_entry_is_named(write, entry):
    path = write("\n".join(line for line in MACHINE.splitlines() if not line.startswith(entry)))
    with pytest.raises(bsplib.UsageError) as raised:
        load_machine(path)
    assert str(raised.value).startswith(
        f"machine: {path} has no entry {entry!r}; a Machine needs name, source and g_s_per_byte"
    )


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ("g_s_per_byte", "-1e-9", r"g is -1e-09; it has to be from 0 to 1"),
        ("l_s", "-1.5", r"l is -1.5; it has to be from 0 to 1"),
        ("l_s", "1", r"l is 1.0; it has to be from 0 to 1"),
        ("g_s_per_byte", "nan", r"g is nan; it has to be from 0 to 1"),
        ("g_s_per_byte", "inf", r"g is inf; it has to be from 0 to 1"),
        ("g_s_per_byte", '"fast"', "g is 'fast'; it has to be a number"),
        ("g_s_per_byte", "[1]", r"g is \[1\]; it has to be a number"),
        ("g_s_per_byte", "true", "g is True; it has to be a number"),
        ("l_s", f"1{'0' * 400}", r"l is 1000\d*\.\.\.0+, which is beyond all floats"),
        ("h", '"mean"', "h is 'mean'; it has to be 'max' or 'sum'"),
        ("p", '"many"', "p is 'many'; it has to be a whole number from 1"),
        ("p", "0", "p is 0"),
        ("p", "-3", "p is -3"),
        ("p", "2.5", "p is 2.5"),
        (
            "p",
            "4\nspeed_flop_per_s = 0",
            "speed is 0.0; it has to be a number greater than 0",
        ),
        (
            "p",
            "4\nspeed_flop_per_s = inf",
            "speed is inf; it has to be a number greater than 0",
        ),
        ("p", "4\nword_bytes = 0", "word_bytes is 0; it has to be a whole number"),
        ("p", "4\ng_s_per_word = 1e-9", "it has both g_s_per_byte and g_s_per_word"),
        ("p", "4\nspeed = 1e9", "there is no entry 'speed'; write speed_flop_per_s"),
        ("p", "4\npatterns = 3", "patterns is 3; it has to be a table"),
        (
            "p",
            "4\npatterns.ring = {}",
            "there is no 'ring' in patterns; choose one of exchange, ping-pong",
        ),
        ("p", "4\npatterns.exchange = 3", "exchange is 3; it has to be a table"),
        ("p", "4\npatterns.exchange.g = 3", "there is no entry 'g'; write g_s_per_byte"),
        (
            "p",
            "4\npatterns.exchange.g_s_per_byte = 3",
            "g of exchange is 3.0; it has to be from 0 to 1",
        ),
        ("p", "4\nsources.l = 3", "l is 3; it has to be a text"),
        ("p", '4\nsources.L = "x"', "there is no 'L' in sources; choose one of p, speed,"),
        ("name", "3", "name is 3; it has to be a text"),
        ("p", "4\ninside = 3", "inside is 3; it has to be a table"),
        ("p", "4\ninside.g_s_per_byte = 1e-9", "inside has no entry 'l_s'"),
        ("p", "4\ninside.l_s = 1e-9", "inside has no entry 'g_s_per_byte'"),
        ("p", "4\ninside = {g_s_per_byte = 1e-9, k_s = 1}", "there is no entry 'k_s'"),
        (
            "p",
            "4\ninside = {g_s_per_byte = 1e-9, l_s = -1e-6}",
            "l of inside is -1e-06; it has to be from 0 to 1",
        ),
        (
            "g_s_per_byte",
            "0\ninside = {g_s_per_byte = 1e-9, l_s = 0}",
            "g is 0 between hosts; then it has to be 0 inside a host, too",
        ),
    ],
)
def test_a_wrong_entry_is_one_sentence(write, entry, value, words):
    path = write(re.sub(rf"(?m)^{entry} = .*$", f"{entry} = {value}", MACHINE))
    with pytest.raises(bsplib.UsageError, match=rf"^machine: {re.escape(path)}: .*{words}"):
        load_machine(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name = ", "{}: it is no file in TOML: "),
        (b"[[[", "{}: it is no file in TOML: "),
        (b"name = 'a'\nname = 'b'", "{}: it is no file in TOML: "),
        (b"\x00", "{}: it is no file in TOML: "),
        (b"name = '\xff\xfe'", "{}: it is no text in UTF-8; bsp"),
        (None, "there is no file {}$"),
    ],
)
def test_a_file_that_is_no_toml_is_one_sentence(tmp_path, content, words):
    path = tmp_path / "machine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(bsplib.UsageError, match=f"^machine: {words.format(re.escape(str(path)))}"):
        load_machine(str(path))


@pytest.mark.parametrize("name", ["abacus", "", "README", "../machine", "IBM-SP2-PVM", "ideal "])
def test_an_unknown_name_is_told_the_known_ones(name):
    with pytest.raises(bsplib.UsageError) as raised:
        load_machine(name)
    assert str(raised.value) == (
        f"machine: there is no Machine {name!r}; name a .toml file or one of "
        f"{', '.join(known_machines())}; bsp machine new FILE.toml describes another one"
    )


@pytest.mark.parametrize("name", known_machines())
def test_every_machine_that_comes_along_says_its_rule_for_h(name):
    file = resources.files("bsplib.machine") / "library" / f"{name}.toml"
    assert tomllib.loads(file.read_text(encoding="utf-8"))["h"] == load_machine(name).h


def test_the_price_of_a_superstep_is_that_of_its_pattern_where_it_is_known():
    patterns = {"exchange": Pattern(2e-9, 5e-6), "all-to-one": Pattern(3e-9, -1e-6)}
    machine = Machine("by hand", "made up", g=1e-9, l=1e-6, patterns=patterns)
    known = ("exchange", "all-to-one", "ping-pong", None)
    assert [machine.pattern_priced(pattern) for pattern in known] == ["exchange", None, None, None]
    assert machine.price(1000) == pytest.approx(2e-6)
    assert machine.price(1000, "exchange") == pytest.approx(7e-6)
    with pytest.raises(bsplib.UsageError, match="by hand has no g and L of ping-pong; it has"):
        machine.price(1000, "ping-pong")


def test_the_machines_that_come_along_can_be_loaded_and_name_their_source():
    names = known_machines()
    assert names == sorted(names)
    assert {"ideal", "shared-memory", "ibm-sp2-pvm"} <= set(names)
    for name in names:
        machine = load_machine(name)
        assert machine.name
        assert machine.source
        assert machine.g >= 0


TABLE_1 = {  # Roda et al. 1999: L in s, g in s for a word of 32 bits
    "origin2000-pvm": (-1.53e-5, 4.88e-8),
    "ibm-sp2-pvm": (8.08e-5, 1.38e-7),
    "utp-lan-pvm": (3.82e-3, 6.04e-6),
    "coaxial-lan-pvm": (1.26e-2, 1.01e-5),
}
TABLE_2 = {"cray-t3e-mpi": (-2.11e-5, 2.92e-8), "origin2000-mpi": (-1.75e-3, 5.53e-8)}


@pytest.mark.parametrize(("name", "figures"), (TABLE_1 | TABLE_2).items())
def test_the_machines_of_the_literature_are_as_printed(name, figures):
    machine = load_machine(name)
    assert machine.source == f"Roda et al. 1999, Table {1 if name in TABLE_1 else 2}"
    assert (machine.l, machine.g * machine.word_bytes) == pytest.approx(figures, rel=1e-12)
    assert (machine.h, machine.word_bytes, machine.speed) == ("sum", 4, None)


# -- gaps -----------------------------------------------------------------------------------------


def test_an_l_below_zero_is_a_gap_and_its_use_asks_for_one():
    machine = load_machine("cray-t3e-mpi")
    for use in (lambda: machine.price(8), lambda: machine.two_stages_pay(8, 4)):
        with pytest.raises(bsplib.UsageError) as raised:
            use()
        assert str(raised.value) == (
            "machine: Cray T3E, MPI has no l (Roda et al. 1999, Table 2, fits it to -2.11e-05 s, "
            "below zero); give it after its name, as in NAME:l=1e-5"
        )


def test_a_figure_that_is_not_there_is_a_gap_that_names_its_option(write):
    machine = load_machine(write(MACHINE))
    with pytest.raises(bsplib.UsageError) as raised:
        machine.need("speed", "by --{figure} {example}")
    assert str(raised.value) == (
        "machine: four boards has no speed (made up, has none); give it by --speed 3e8"
    )


def test_the_l_of_a_pattern_may_be_a_gap(write):
    machine = load_machine(write(FULL))
    assert machine.need("l of ping-pong") == 1e-4
    with pytest.raises(bsplib.UsageError, match=r"eight boards has no l of all-to-all \(made up, "):
        machine.need("l of all-to-all")


def test_figures_may_be_given_after_the_name():
    machine = load_machine("cray-t3e-mpi:l=2e-5, speed=3e8")
    assert (machine.l, machine.speed) == (2e-5, 3e8)
    assert machine.g == load_machine("cray-t3e-mpi").g
    assert machine.sources["l"] == machine.sources["speed"] == "given after its name"
    assert machine.price(0) == 2e-5


def test_figures_may_be_given_after_a_file(write):
    assert load_machine(write(MACHINE) + ":g=1e-9").g == 1e-9


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("p=3", "'p' cannot be given here; speed, g and l can"),
        ("l=-1e-5", "l is -1e-05; it has to be from 0 to 1"),
        ("l=fast", "could not convert string to float: 'fast'"),
        ("speed=0", "speed is 0.0; it has to be a number greater than 0"),
        ("speed=1e9,", "'' cannot be given here"),
    ],
)
def test_a_figure_that_cannot_be_said_is_one_sentence(said, words):
    with pytest.raises(bsplib.UsageError, match=rf"^machine: ideal:{said}: {re.escape(words)}"):
        load_machine(f"ideal:{said}")


# -- from a trace ---------------------------------------------------------------------------------


def test_a_machine_can_be_had_again_from_the_json_of_a_trace(write):
    for text in (MACHINE, FULL, HOSTS):
        machine = load_machine(write(text))
        assert Machine.of(json.loads(json.dumps(asdict(machine)))) == machine


def test_a_trace_of_an_older_version_holds_fewer_figures():
    old = {"name": "m", "source": "x", "g": 1e-9, "l": 1e-6, "p": None, "h": "max"}
    assert Machine.of(old) == Machine("m", "x", 1e-9, 1e-6)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"name": "m"},
        {"name": "m", "source": "x"},
        {"name": "m", "source": "x", "g": "1"},
        {"name": "m", "source": "x", "g": math.nan},
        {"name": "m", "source": "x", "g": 0, "patterns": {"exchange": 3}},
        {"name": "m", "source": "x", "g": 0, "patterns": {"exchange": {}}},
        {"name": "m", "source": "x", "g": 0, "patterns": {"ring": {"g": 0}}},
        {"name": "m", "source": "x", "g": 0, "sources": [1]},
        {"name": "m", "source": "x", "g": 0, "sources": {"g": 1}},
        {"name": "m", "source": "x", "g": 0, "inside": 3},
        {"name": "m", "source": "x", "g": 0, "inside": {"g": 0}},
    ],
)
def test_what_is_no_machine_is_refused(values):
    with pytest.raises((ValueError, KeyError)):
        Machine.of(values)


# -- prices ---------------------------------------------------------------------------------------


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


def test_two_stages_do_not_pay_where_communication_is_free():
    assert not load_machine("ideal").two_stages_pay(10**9, 100)
    assert not Machine("m", "made up", g=0.0, l=1e-3).two_stages_pay(10**9, 100)


# -- a run on a Machine ---------------------------------------------------------------------------


@pytest.mark.procs(2)
def test_a_program_can_ask_for_its_machine(run, write):
    assert run(lambda bsp: bsp.machine.name, machine=write(MACHINE)) == ["four boards"] * 2
    given = Machine("given", "made up", g=1e-9, l=0.0)
    assert run(lambda bsp: bsp.machine, machine=given) == [given] * 2


def test_virtual_processors_ask_for_an_l_before_they_start():
    with pytest.raises(bsplib.UsageError, match=r"^machine: Origin 2000, PVM has no l"):
        bsplib.run(lambda bsp: None, nprocs=2, backend="sim", machine="origin2000-pvm")
    assert bsplib.run(
        lambda bsp: bsp.machine.l, nprocs=2, backend="sim", machine="origin2000-pvm:l=1e-6"
    ) == [1e-6, 1e-6]
