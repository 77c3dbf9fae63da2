"""The tables as CSV, read back by the csv module and by pandas."""

import csv
import io

import pandas
import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import METRICS

UNITS = {"comp": "s", "comm": "s", "idle": "s", "h": "bytes"}


def read(exported, table="nodes"):
    return pandas.read_csv(io.BytesIO(exported.bytes("csv", table=table)), keep_default_na=False)


def test_a_row_a_node_with_the_numbers_of_the_call_graph(broadcast):
    table = read(broadcast).set_index("id")
    assert list(table.index) == list(broadcast.costs)
    for name, cost in broadcast.costs.items():
        row = table.loc[name]
        assert (row["supersteps"], row["elapsed_s"]) == (cost.count, cost.elapsed_s)
        for metric in METRICS:
            found = [row[f"{metric}_{part}_{UNITS[metric]}"] for part in ("max", "avg", "min")]
            summary = cost[metric]
            assert found == [summary.maximum, summary.average, summary.minimum]


def test_a_row_an_edge(broadcast):
    table = read(broadcast, "edges")
    edges = dict(broadcast.callgraph.graph.edges)
    assert list(zip(table["caller"], table["callee"], strict=True)) == list(edges)
    assert list(table["h_max_bytes"]) == [data["cost"].h.maximum for data in edges.values()]


def test_the_processes_of_a_node_add_up_to_its_average(broadcast):
    table = read(broadcast, "processes")
    assert len(table) == 16 * len(broadcast.nodes)
    sums = table.groupby("id")[["comp_s", "comm_s", "idle_s", "h_bytes"]].sum()
    for name, cost in broadcast.costs.items():
        found = list(sums.loc[name])
        assert found == pytest.approx([16 * cost[metric].average for metric in METRICS])


def test_the_supersteps_of_a_cost_centre_add_up_to_it(broadcast):
    table = read(broadcast, "supersteps")
    steps = table[table["sync"] == "sync"]
    assert list(table["superstep"]) == list(range(len(table)))
    for name, part in steps.groupby("id"):
        cost = broadcast.costs[name]
        assert len(part) == cost.count
        for metric in METRICS:
            for measure, value in (("max", "maximum"), ("avg", "average"), ("min", "minimum")):
                found = part[f"{metric}_{measure}_{UNITS[metric]}"].sum()
                assert found == pytest.approx(getattr(cost[metric], value))


def test_a_superstep_names_the_processes_with_most_computation_and_h(script, exported):
    made = script(3)
    made.step("main", [10, 30, 30], puts=[(2, 0, 8)])
    made.step("main", [5, 0, 9], puts=[(0, 1, 16), (1, 2, 4)])
    table = read(exported(made.run()))
    assert list(table["comp_max_s"][:1]) == [39e-9]
    table = read(exported(made.run()), "supersteps")
    assert list(table["comp_max_pid"]) == [1, 2]
    assert list(table["h_max_pid"]) == [0, 0]
    assert list(table["processes"]) == [3, 3]


def test_a_process_without_a_record_in_a_superstep_counts_as_0(script, exported):
    made = script(2)
    made.step(["main", None], [10, 0])
    table = read(exported(made.run()), "supersteps")
    row = table.iloc[0]
    assert (row["processes"], row["comp_min_s"]) == (1, 0)
    assert (row["comp_max_s"], row["comp_avg_s"]) == (10e-9, 5e-9)


@pytest.mark.parametrize("name", ["=1+2", "+x", "-x", "@x"])
def test_a_name_that_a_spreadsheet_would_compute_is_marked_as_text(calling, name):
    rows = list(csv.DictReader(io.StringIO(calling(name).text("csv"))))
    assert f"'{name}" in {row["name"] for row in rows}


def test_hostile_names_stay_in_their_cells(hostile):
    rows = list(csv.DictReader(io.StringIO(hostile.text("csv"))))
    assert [row["name"].removeprefix("'") for row in rows] == [
        fmt.visible(node.name) for node in hostile.nodes.values()
    ]


@pytest.mark.parametrize(("table", "count"), [("nodes", 1), ("processes", 2), ("edges", 0)])
def test_a_run_without_records_gives_a_table_all_the_same(empty, table, count):
    assert len(read(empty, table)) == count


def test_a_run_without_records_has_no_supersteps(empty):
    assert read(empty, "supersteps").empty


def test_supersteps_have_what_they_lose(script, exported):
    program = script(2)
    program.step("main", w=[1000, 3000])
    table = read(exported(program.run()), "supersteps")
    assert list(table["loss_s"]) == [pytest.approx(1e-6)]
    assert "cost_s" not in table
