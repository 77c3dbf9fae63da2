"""The time-independent trace, read as SimGrid reads it, and replayed by SimGrid if it is there."""

from __future__ import annotations

import io
import re
import shutil
from collections import Counter, defaultdict

import pytest

import bsplib
from bsplib.profiler.costs import h_relation
from bsplib.profiler.export import simgrid
from bsplib.profiler.export.table import Request
from bsplib.recording.trace import read_trace
from tests.processes import run_command

ACTIONS = {"init": 0, "compute": 1, "isend": 3, "irecv": 3, "waitall": 0, "barrier": 0}
ACTIONS |= {"finalize": 0}
"""The actions that are written, with the number of their arguments."""


def program(bsp):
    bsp.charge(1e-3 * (bsp.pid + 1))
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(1000))
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(500))
    bsp.sync()
    with bsp.partition([bsp.nprocs - 1, bsp.nprocs]) as sub:
        sub.charge(2e-3)
        sub.send(0, bytes(100))
        sub.sync()
    got = bsp.get(0, bsp.zeros(4))
    bsp.sync()
    bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(8))
    bsp.oblsync(1)
    bsp.charge(5e-4)
    return got


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "run.bsp"
    bsplib.run(program, nprocs=4, backend="sim", machine="ideal", profile=path)
    return read_trace(path)


@pytest.fixture(scope="module")
def text(run):
    file = io.BytesIO()
    simgrid.write(Request(run), file)
    return file.getvalue().decode()


def actions(text):
    """Return the actions of each process, as the replay reads them."""
    found = defaultdict(list)
    for line in text.splitlines():
        pid, action, *arguments = line.split()
        assert len(arguments) == ACTIONS[action], line
        found[int(pid)].append((action, *map(int, arguments)))
    return found


@pytest.mark.parametrize("name", ["broadcast", "tree", "hostile", "empty"])
def test_every_line_is_an_action_that_the_replay_knows(name, request):
    for own in actions(request.getfixturevalue(name).text("simgrid")).values():
        assert own[0] == ("init",)
        assert own[-1] == ("finalize",)


def test_every_message_is_received_once_and_barriers_are_of_all(text):
    sent, come, barriers = Counter(), Counter(), Counter()
    for pid, own in actions(text).items():
        for action, *arguments in own:
            if action == "isend":
                to, tag, nbytes = arguments
                sent[pid, to, tag, nbytes] += 1
            elif action == "irecv":
                source, tag, nbytes = arguments
                come[source, pid, tag, nbytes] += 1
            barriers[pid] += action == "barrier"
    assert sent == come
    assert max(sent.values()) == 1
    assert len(set(barriers.values())) == 1


def test_the_sums_are_those_of_the_run(run, text):
    (recorded,) = run.runs
    found = actions(text)
    computed = [sum(one[1] for one in own if one[0] == "compute") for own in found.values()]
    assert computed == [1e6 * (pid + 1) + 2.5e6 for pid in range(4)]
    nbytes = sum(one[3] for own in found.values() for one in own if one[0] == "isend")
    in_barriers = sum(
        one[3] for own in found.values() for one in own if one[0] == "isend" and one[3] == 1
    )
    assert nbytes - in_barriers == h_relation(recorded)[0].sum()
    assert in_barriers == 2 * 3  # two rounds of three members


@pytest.mark.slow
def test_the_simulator_replays_it(run, text, tmp_path):
    smpirun = shutil.which("smpirun")
    if smpirun is None:
        pytest.skip("there is no smpirun: SimGrid is not installed")
    (tmp_path / "run.ti").write_text(text)
    (tmp_path / "list.txt").write_text("run.ti\n")
    (tmp_path / "hosts").write_text("".join(f"n{pid}\n" for pid in range(4)))
    (tmp_path / "platform.xml").write_text(
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" '
        'bw="100GBps" lat="10ns"/></platform>\n'
    )
    done = run_command(
        *(smpirun, "-platform", "platform.xml", "-hostfile", "hosts"),
        *("-np", "4", "-replay", "list.txt"),
        cwd=tmp_path,
        check=True,
    )
    (found,) = re.findall(r"Simulation time ([\d.]+)", done.stderr + done.stdout)
    took = run.runs[0].records["end"].max() / 1e9
    assert float(found) == pytest.approx(took, rel=0.02)
