"""Exports of runs that are made by hand, and programs of other makers that read them."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bsplib.profiler.export.table import FORMATS, Request
from bsplib.recording.records import Trace
from tests.made_runs import broadcast_run, frame, hostile_run, run_of, step, tree_run
from tests.scripted import Script

if TYPE_CHECKING:
    from bsplib.recording.records import Run

FORM = {form.name: form for form in FORMATS}


class Exported:
    """A run, and what the formats write of it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.written: dict[object, bytes] = {}
        self.request = Request(Trace((run,)))
        self.callgraph = self.request.profile.callgraph
        self.nodes = dict(self.callgraph.graph.nodes(data="node"))
        self.costs = dict(self.callgraph.graph.nodes(data="cost"))

    def bytes(self, name: str, **options: object) -> bytes:
        """Return the file in a format; it is written once."""
        key = (name, *options.items())
        if key not in self.written:
            file = io.BytesIO()
            FORM[name].write(Request(Trace((self.run,)), **options), file)
            self.written[key] = file.getvalue()
        return self.written[key]

    def text(self, name: str, **options: object) -> str:
        return self.bytes(name, **options).decode()


_DOT = f"""#!{sys.executable}
import sys, pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.read())
sys.stdout.buffer.write(graph.draw(format=sys.argv[1].removeprefix("-T"), prog="dot"))
"""


@pytest.fixture(scope="session")
def dot_of_graphviz(tmp_path_factory) -> str:
    """The folder of a dot that is Graphviz itself, wherever this computer has none."""
    program = tmp_path_factory.mktemp("graphviz") / "dot"
    program.write_text(_DOT, encoding="utf-8")
    program.chmod(0o755)
    return str(program.parent)


@pytest.fixture(scope="session")
def broadcast() -> Exported:
    """Nine nodes, two of them with several callers."""
    return Exported(broadcast_run(onestage=5, twostage=10, arguments=["--size", "40000"]))


@pytest.fixture(scope="session")
def tree() -> Exported:
    """300 nodes."""
    return Exported(tree_run(300))


@pytest.fixture(scope="session")
def tangle() -> Exported:
    """Eighty functions that call each other in all ways."""
    random = np.random.default_rng(0)
    made = Script(2)
    for _ in range(80):
        called = [frame(f"g{number}", 5, 5) for number in random.integers(0, 80, 20)]
        step(made, (frame("main", 1, 1), *called), random.random(2))
    return Exported(run_of(made))


@pytest.fixture(scope="session")
def hostile() -> Exported:
    """Functions, files and a program whose names try everything."""
    return Exported(hostile_run())


@pytest.fixture(scope="session")
def empty(script) -> Exported:
    """A run without records."""
    return Exported(script(2).run())


@pytest.fixture(scope="session")
def calling():
    """Exports of a run in which ``main`` calls a function of any name."""

    def make(name: str) -> Exported:
        made = Script(1)
        step(made, (frame("main", 1, 2), frame(name, 5, 6)), [1e-3])
        return Exported(run_of(made))

    return make


@pytest.fixture(scope="session")
def exported() -> type[Exported]:
    """Exports of a run."""
    return Exported
