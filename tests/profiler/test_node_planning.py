"""The run that tells most: it is named, or made, and settles what was open."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

import bsplib
from bsplib.errors import UsageError
from bsplib.profiler.models.nodes import model_of_traces
from bsplib.profiler.models.nodes.planning import Planner, next_run
from bsplib.tools.cli import main as cli

PROGRAM = """
import sys
import bsplib

def main(bsp, n):
    for _ in range(bsp.nprocs - 1):
        bsp.charge(1e-6)  # so that only the supersteps are open, and no computation
        bsp.sync()

if __name__ == "__main__":
    bsplib.run(main, int(sys.argv[1]), nprocs=int(sys.argv[2]), backend="sim", profile=sys.argv[3])
"""


@pytest.fixture
def traces(tmp_path):
    """Traces of a program whose supersteps two numbers of processes do not tell; its command."""
    (tmp_path / "rounds.py").write_text(PROGRAM, encoding="utf-8")
    names = {"__name__": "rounds"}
    exec(compile(PROGRAM, tmp_path / "rounds.py", "exec"), names)
    paths = [tmp_path / f"a-{n}-{p}.bsp" for n in (64, 256) for p in (2, 4)]
    for path in paths:
        _, n, p = path.stem.split("-")
        bsplib.run(names["main"], int(n), nprocs=int(p), backend="sim", profile=path)
    return paths, f"{sys.executable} {tmp_path}/rounds.py {{n}} {{p}} {{trace}}"


def planner(paths, command, said):
    return Planner(command, paths[0].parent, model_of_traces, said.append)


def test_without_a_budget_the_run_that_would_tell_most_is_named(traces):
    paths, command = traces
    said = []
    model, every = planner(paths, command, said).settle(paths, 0)
    assert every == paths
    assert model.refused()
    assert said[-1].startswith("The run that would tell most is at n = 64, p = 8: ")


@pytest.mark.lengthy
def test_with_a_budget_runs_are_made_until_nothing_is_open(traces):
    paths, command = traces
    said = []
    model, every = planner(paths, command, said).settle(paths, 60)
    first, *more, last = said
    assert first == "running n = 64, p = 8"
    assert all(each.startswith("running n = ") for each in more)  # as far as times scatter
    assert last == "No further run would tell more: the laws that fit hardly differ."
    assert len(every) == len(paths) + 1 + len(more)
    assert not model.refused()
    assert next_run(model) is None


def test_a_command_without_a_place_for_a_variable_or_the_trace_gets_a_sentence(traces):
    paths, _ = traces
    with pytest.raises(UsageError, match=r"--run has no place for n; write it as \{n\}"):
        planner(paths, "bsp run -n {p} rounds.py", []).settle(paths, 0)
    with pytest.raises(UsageError, match=r"write it as \{trace\}"):
        planner(paths, "python rounds.py {n} {p}", []).settle(paths, 0)
    found = planner(paths, "bsp run -n {p} rounds.py {n}", [])
    line = found.line({"n": 64.0, "p": 8.0}, paths[0])
    assert line == ["bsp", "run", "--profile", str(paths[0]), "-n", "8", "rounds.py", "64"]


def test_a_run_that_fails_says_so(traces):
    paths, _ = traces
    command = f"{sys.executable} -c 'raise SystemExit(\"no memory\")' {{n}} {{p}} {{trace}}"
    with pytest.raises(UsageError, match="failed: no memory"):
        planner(paths, command, []).settle(paths, 60)


def test_the_command_names_the_run(traces):
    paths, command = traces
    found = CliRunner().invoke(cli, ["fit", *map(str, paths), "--run", command])
    assert found.exit_code == 0
    assert "The run that would tell most is at n = 64, p = 8" in found.output
    found = CliRunner().invoke(cli, ["fit", *map(str, paths), "--budget", "10m"])
    assert "--budget needs --run" in found.output
    found = CliRunner().invoke(cli, ["fit", *map(str, paths), "--budget", "soon"])
    assert "'soon' is no time" in found.output
