"""``docs/report.md`` and the reference name all that a report says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import bsplib
from bsplib.profiler.kinds import KINDS
from bsplib.profiler.rows import SORTS
from tests.profiler.stored.said import FOLDER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "traces.md").read_text(encoding="utf-8")


def test_the_page_names_every_kind_of_loss_and_every_order():
    rows = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
    named = {row.removesuffix(" straggler").removesuffix(" straggler in a branch") for row in rows}
    assert set(KINDS) <= named
    assert [
        order for order in SORTS if f"`{order}`" not in PAGE and order not in {"loss", "time"}
    ] == []


def unnamed(names):
    """Names that the reference does not have; of the metrics it has those of computation."""
    others = {name for name in names if f"`{name}`" not in REFERENCE}
    return {name for name in others if not re.match(r"(comm|idle|h)_(max|avg|min|by)_", name)}


@pytest.mark.parametrize("stored", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_the_reference_names_everything_in_the_document(stored):
    document = json.loads(stored.read_text(encoding="utf-8"))["document"]
    assert unnamed(re.findall(r'"(\w+)":', json.dumps(document))) == set()


def test_the_reference_names_every_column_of_the_tables():
    (run,) = bsplib.load(FOLDER / "fixed.bsp").runs
    assert unnamed(run.nodes().columns) == unnamed(run.supersteps().columns) == set()
