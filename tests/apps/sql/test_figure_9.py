"""The queries in their last stage are balanced: their call graph is not shaded (Figure 9)."""

from __future__ import annotations

import pytest

import bsplib
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.program import main
from bsplib.profiler.callgraph import build
from bsplib.profiler.critical import shades
from bsplib.profiler.graph_book import book_graph
from bsplib.recording.trace import read_trace

VIEWS = [f"{metric}-{measure}" for metric in ("h", "comp") for measure in ("imb", "weighted")]
NO_SHADE = 0.25
"""Of a scale from white, 0, to red, 1: hardly to be seen beside white."""


def recorded(path, generator, stage, block):
    how = {"stage": stage, "block": block, "keep": ()}
    bsplib.run(main, generator, **how, nprocs=16, backend="sim", profile=path)
    return build(read_trace(path).runs[0])


def greatest_shades(callgraph):
    return {view: max(shades(callgraph, view).values()) for view in VIEWS}


@pytest.mark.lengthy
def test_no_node_of_the_last_stage_is_shaded(tmp_path):
    last = recorded(tmp_path / "last.bsp", Generator(36_000, skew=0, items=15_000), "bitonic", 64)
    assert max(greatest_shades(last).values()) < NO_SHADE
    assert book_graph(last).verdict().balanced


@pytest.mark.lengthy
def test_nodes_of_the_first_stage_are_shaded_in_all_views(tmp_path):
    first = recorded(tmp_path / "first.bsp", Generator(), "original", 1024)
    assert min(greatest_shades(first).values()) > 2 * NO_SHADE
    assert not book_graph(first).verdict().balanced


@pytest.mark.slow
def test_no_node_of_the_last_stage_is_shaded_with_millions_of_rows(tmp_path):
    generator = Generator(2_400_000, skew=0, items=1_000_000)
    last = recorded(tmp_path / "last.bsp", generator, "bitonic", 1024)
    assert max(greatest_shades(last).values()) < NO_SHADE
    assert book_graph(last).verdict().balanced
