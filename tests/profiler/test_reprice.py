"""A run priced on other Machines, the crossovers between them, and bsp machines."""

from __future__ import annotations

import io
from dataclasses import asdict, replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from bsplib.machine import Machine
from bsplib.profiler.callgraph import build
from bsplib.profiler.losses import book
from bsplib.profiler.machines_report import print_machines
from bsplib.profiler.rates import Rates
from bsplib.profiler.reprice import crossings, scan
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from bsplib.sync_kinds import Kind
from bsplib.tools.cli import main

RATES = Rates(g=1e-9, l=1e-7)
HERE = Machine("here", "made up", g=1e-9, l=1e-7, speed=2e9)
THERE = Machine("there", "made up", g=1e-8, l=1e-7, speed=1e9)


@pytest.fixture
def straggler_and_exchange(script):
    """``relax`` computes 1000 ns on process 0 only; ``send`` moves 400 bytes, 4 times."""
    program = script(2)
    program.step("main relax:7", w=[1000, 0])
    for _ in range(4):
        program.step("main send:9", puts=[(0, 1, 100)])
    program.step("main:3", kind=Kind.END)
    return program.run(meta={"machine": asdict(HERE), "machine_given": True})


@pytest.fixture
def graph(straggler_and_exchange):
    return build(straggler_and_exchange)


def name(callgraph, node):
    return callgraph.graph.nodes[node]["node"].name


def overtakings(callgraph, found):
    return [
        (pytest.approx(each.value), name(callgraph, each.node), name(callgraph, each.other))
        for each in found.overtakings
    ]


def test_from_the_g_at_which_two_places_cost_the_same_the_other_costs_more(graph):
    # relax: 1000 ns + l; send: 400 g + 4 l: equal at 400 g = 1000 - 300 ns
    found = scan(graph, RATES, "g", 1e-9, 1e-8)
    assert overtakings(graph, found) == [(700e-9 / 400, "app.py line 9", "app.py line 7")]
    assert found.overtakings[0].leads
    assert (found.figure, found.low, found.high, found.rule) == ("g", 1e-9, 1e-8, "max")


def test_so_it_is_with_l(graph):
    # equal at 1000 ns + l = 400 ns + 4 l
    found = scan(graph, RATES, "l", 0.0, 1e-3)
    assert overtakings(graph, found) == [(200e-9, "app.py line 9", "app.py line 7")]


def test_and_with_the_time_of_a_computation(graph):
    # equal at 1000 ns ratio + 100 = 400 + 400 ns
    found = scan(graph, RATES, "ratio", 0.1, 10.0)
    assert overtakings(graph, found) == [(0.7, "app.py line 7", "app.py line 9")]


def test_at_the_crossover_both_places_cost_the_same(graph):
    (crossover,) = scan(graph, RATES, "g", 1e-9, 1e-8).overtakings
    nodes = book(graph, replace(RATES, g=crossover.value)).nodes
    assert nodes[crossover.node].cost_s == pytest.approx(nodes[crossover.other].cost_s)


def test_where_nothing_is_overtaken_there_is_no_crossover(graph):
    assert scan(graph, RATES, "g", 1e-9, 1.7e-9).overtakings == ()
    assert scan(graph, RATES, "g", 1.8e-9, 1e-8).overtakings == ()


def test_the_greatest_loss_changes_its_kind(script):
    program = script(2)
    program.step("main relax:7", w=[40_000, 0])
    for _ in range(100):
        program.step("main send:9", puts=[(0, 1, 100)])
    callgraph = build(program.run())
    # Waiting for relax costs 20,000 ns. send loses nothing, since its h is 100 on both
    # processes, but its 100 l are the greatest from l = 200 ns on.
    (change,) = scan(callgraph, RATES, "l", 1e-9, 1e-3).new_losses
    assert change.value == pytest.approx(200e-9, rel=1e-3)
    assert (change.before.kind, change.after.kind) == ("fixed", "too many supersteps")
    assert name(callgraph, change.before.chain[-1]) == "app.py line 7"
    assert name(callgraph, change.after.chain[-1]) == "app.py line 9"


def test_a_place_between_others_is_no_leader(script):
    program = script(1)
    program.step("main a:1", w=1000)
    for _ in range(2):
        program.step("main b:2", w=100)
    program.step("main c:3", w=500)
    callgraph = build(program.run())
    found = scan(callgraph, Rates(0.0, 0.0), "l", 0.0, 5e-7)
    (crossover,) = found.overtakings
    assert (name(callgraph, crossover.node), crossover.leads) == ("app.py line 2", False)
    assert crossover.value == pytest.approx(300e-9)


def test_a_place_that_costs_next_to_nothing_overtakes_without_a_word(script):
    program = script(1)
    program.step("main a:1", w=10**9)
    program.step("main b:2", w=10)
    for _ in range(2):
        program.step("main c:3", w=1)
    callgraph = build(program.run())
    assert scan(callgraph, Rates(0.0, 0.0), "l", 0.0, 1e-7).overtakings == ()


def lines(**slopes):
    """Costs that are straight lines: offset and slope by name."""
    return lambda x: {key: offset + slope * x for key, (offset, slope) in slopes.items()}


def test_the_greatest_of_straight_lines_changes_where_they_cross():
    costs = lines(a=(10, 0), b=(0, 2), c=(4, 1))
    assert crossings(costs, 0, 20) == [(pytest.approx(5), "a", "b")]
    costs = lines(a=(10, 0), b=(0, 2), c=(5, 1.2))
    assert crossings(costs, 0, 20) == [
        (pytest.approx(25 / 6), "a", "c"),
        (pytest.approx(6.25), "c", "b"),
    ]


def test_lines_that_touch_at_an_end_do_not_cross():
    costs = lines(a=(1, 0), b=(0, 1))
    assert crossings(costs, 0, 1) == []
    assert crossings(costs, 1, 2) == []
    assert crossings(costs, 0, 0.5) == []


def test_a_step_is_found_within_a_ten_thousandth():
    found = crossings(lambda x: {"a": 1.0, "b": 2.0 * (x > 0.3)}, 0, 1)
    assert found == [(pytest.approx(0.3, rel=3e-4), "a", "b")]


def test_a_curve_is_followed_to_where_it_crosses():
    ((value, *items),) = crossings(lambda x: {"a": 1.0, "b": x**9}, 0, 3)
    assert value == pytest.approx(1, rel=3e-4)
    assert items == ["a", "b"]


def test_nothing_costs_nothing():
    assert crossings(lambda _: {}, 0, 1) == []


# -- as a table -----------------------------------------------------------------------------


def printed(run, rates, width=120, **options):
    console = Console(file=io.StringIO(), width=width)
    print_machines(run, rates, console=console, **options)
    return console.file.getvalue()


def row(text, start):
    """The cells of the first row that begins so."""
    found = next(line for line in text.splitlines() if line.strip().startswith(start))
    return found.strip().removeprefix(start).split("  ")


def cells(text, start):
    return [cell.strip() for cell in row(text, start) if cell.strip()]


def test_the_table_has_the_cost_of_each_node_on_each_machine(straggler_and_exchange):
    there = Rates(g=1e-8, l=1e-7, ratio=2.0, source="there")
    text = printed(straggler_and_exchange, [there])
    assert cells(text, "g for a byte") == ["1.00 ns", "10.0 ns"]
    assert cells(text, "computation takes") == ["1x", "2x"]
    assert cells(text, "app.py line 7") == ["* 1.10 µs", "2.10 µs"]
    assert cells(text, "app.py line 9") == ["800 ns", "* 4.40 µs"]
    assert cells(text, "cost of the run") == ["1.90 µs", "6.50 µs"]
    assert cells(text, "lost of it") == ["500 ns", "1.00 µs"]
    assert (
        "From g = 1.75 ns for a byte (max in, out) on (as on there), app.py line 9 in send costs "
        "more than app.py line 7 in relax, and most of all." in text
    )
    assert "This run: g and l are those of here." in text


def test_a_run_with_figures_of_its_own_is_not_said_to_have_those_of_a_machine_beside_it(
    straggler_and_exchange,
):
    text = printed(straggler_and_exchange, [Rates(g=0.0, l=0.0, source="here")])
    assert cells(text, "g for a byte") == ["1.00 ns", "0 s"]
    assert "This run: g and l were given to it, in place of those of here." in text


def test_machines_with_the_other_rule_have_a_crossover_of_their_own(straggler_and_exchange):
    there = Rates(g=1e-8, l=1e-7, rule="sum", source="there")
    text = printed(straggler_and_exchange, [there])
    assert "for a byte (in + out) on (as on there), app.py line 9" in text
    assert "(max in, out) on" not in text


def test_without_a_crossover_the_table_says_so(straggler_and_exchange):
    there = Rates(g=1e-9, l=1e-8, source="there")
    text = printed(straggler_and_exchange, [there])
    assert "No figure between these Machines changes which node costs or loses most." in text


def test_many_machines_on_a_narrow_terminal_get_several_tables(straggler_and_exchange):
    others = [Rates(number * 1e-9, 1e-7, source=f"there {number}") for number in range(2, 9)]
    text = printed(straggler_and_exchange, others, width=80)
    assert max(map(len, text.split("This run:")[0].splitlines())) <= 80
    for number in range(2, 9):
        assert f"there {number}" in text
    assert text.count("cost of the run") == 3


def test_of_many_nodes_the_costliest_are_shown(straggler_and_exchange):
    text = printed(straggler_and_exchange, [], most=2)
    assert "main" in text
    assert "app.py line 9" not in text
    assert "(4 more nodes cost less)" in text
    assert "between these Machines" not in text  # there is no other one


# -- bsp machines ---------------------------------------------------------------------------


@pytest.fixture
def command(straggler_and_exchange, tmp_path):
    trace, there = tmp_path / "run.bsp", tmp_path / "there.toml"
    write_trace(trace, Trace((straggler_and_exchange,)))
    there.write_text(THERE.text(), encoding="utf-8")

    def command(*arguments):
        return CliRunner().invoke(main, ["machines", str(trace), *arguments])

    command.there = str(there)
    return command


def test_bsp_machines_prices_a_machine_file(command):
    result = command("--machine", command.there)
    assert result.exit_code == 0
    assert cells(result.output, "computation takes") == ["1x", "2x"]
    assert "Left out" not in result.output


def test_figures_may_follow_the_name(command):
    result = command("--machine", f"{command.there}:g=1e-7,speed=4e9")
    assert cells(result.output, "g for a byte") == ["1.00 ns", "100 ns"]
    assert cells(result.output, "computation takes") == ["1x", "0.5x"]


def test_a_machine_that_lacks_a_figure_is_an_error_that_says_how_to_give_it(command):
    result = command("--machine", "cray-t3e-mpi", "--speed", "1x")
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert "give it after its name, as in NAME:l=1e-5" in result.output
    result = command("--machine", "ibm-sp2-pvm")
    assert "has no speed" in result.output
    assert "3e8" in result.output


def test_without_names_all_machines_with_the_figures_are_priced_and_the_others_named(command):
    text = command().output
    assert (
        "Left out, since their speed compared with the run is not known: coaxial-lan-pvm, "
        "ibm-sp2-pvm, shared-memory, utp-lan-pvm; give it, as in --speed 0.5x."
    ) in text
    assert "Left out, since their l is not known: cray-t3e-mpi," in text
    text = command("--speed", "0.5x").output
    assert "UTP LAN, PVM" in text
    assert "their speed" not in text


def test_each_run_of_the_trace_has_a_table(straggler_and_exchange, tmp_path):
    trace = tmp_path / "run.bsp"
    write_trace(trace, Trace((straggler_and_exchange,) * 2))
    result = CliRunner().invoke(main, ["machines", str(trace)])
    assert result.output.count("cost of the run") == 2
    result = CliRunner().invoke(main, ["machines", str(trace), "--run", "2"])
    assert result.output.count("cost of the run") == 1
