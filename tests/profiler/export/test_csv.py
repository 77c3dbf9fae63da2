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


@pytest.mark.parametrize("name", ["=1+2", "+x", "-x", "@x"])
def test_a_name_that_a_spreadsheet_would_compute_is_marked_as_text(calling, name):
    rows = list(csv.DictReader(io.StringIO(calling(name).text("csv"))))
    assert f"'{name}" in {row["name"] for row in rows}


def test_hostile_names_stay_in_their_cells(hostile):
    rows = list(csv.DictReader(io.StringIO(hostile.text("csv"))))
    assert [row["name"].removeprefix("'") for row in rows] == [
        fmt.visible(node.name) for node in hostile.nodes.values()
    ]
