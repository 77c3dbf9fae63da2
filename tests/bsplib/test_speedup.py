"""``bsp run --speedup``: T(1)/T(P), with the script run once more on one processor."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bsplib.recording.trace import read_trace


@pytest.fixture
def bsp(tmp_path):
    """Run the bsp command on a script in a folder of its own."""

    def run_it(text, *options, together=False):
        (tmp_path / "script.py").write_text(textwrap.dedent(text))
        return subprocess.run(
            [Path(sys.executable).parent / "bsp", "run", *options, "script.py"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )

    return run_it


SHARED_WORK = """
import sys
import bsplib

def main(bsp):
    bsp.charge(8.0 / bsp.nprocs + 0.5)
    bsp.sync()

if __name__ == "__main__":
    bsplib.run(main, backend="sim")
    print("ended")
    {end}
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("end", ["", "sys.exit()", "sys.exit(0)"])
def test_the_time_of_one_processor_is_that_of_a_run_with_one_processor(bsp, end):
    """The total computation is 8 + 4 * 0.5 s, and a run with one process takes 8.5 s."""
    done = bsp(SHARED_WORK.format(end=end), "-n", "4", "--speedup")
    assert done.returncode == 0
    assert done.stdout == "ended\n"
    assert done.stderr.splitlines() == [
        "virtual time: parallel 2.5 s, total computation 10 s",
        "speedup: T(1) 8.5 s / T(P) 2.5 s = 3.4",
    ]


@pytest.mark.lengthy
def test_both_runs_are_on_the_same_machine(bsp):
    script = """
    import bsplib

    def main(bsp):
        bsp.charge(1.0)
        bsp.sync()

    bsplib.run(main)
    """
    machine = "ideal:l=0.25"
    done = bsp(script, "--backend", "sim", "-n", "4", "--machine", machine, "--speedup")
    assert done.stderr.splitlines()[-1] == "speedup: T(1) 1.25 s / T(P) 1.25 s = 1"


@pytest.mark.lengthy
def test_the_end_of_main_costs_nothing_as_in_the_trace(bsp, tmp_path):
    script = """
    import bsplib

    def main(bsp):
        bsp.charge(1.0)
        bsp.sync()
        bsp.charge(2.0 + bsp.pid)

    bsplib.run(main)
    """
    trace = tmp_path / "run.bsp"
    machine = "ideal:l=0.25"
    options = ["--backend", "sim", "-n", "2", "--machine", machine, "--profile", str(trace)]
    done = bsp(script, *options)
    assert done.stderr.startswith("virtual time: parallel 4.25 s, total computation 7 s")
    (run,) = read_trace(trace).runs
    assert run.records["end"].max() == 4_250_000_000


@pytest.mark.lengthy
def test_what_the_command_says_comes_after_what_the_script_has_printed(bsp, monkeypatch):
    """Also where both go into the same pipe, into which Python writes its output late."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    done = bsp(SHARED_WORK.format(end=""), "-n", "4", "--profile", "run.bsp", together=True)
    words = [line.split()[0] for line in done.stdout.splitlines()]
    assert words == ["virtual", "ended", "recorded"]


@pytest.mark.lengthy
def test_each_run_of_a_script_has_its_speedup(bsp):
    script = """
    import bsplib

    def main(bsp, work):
        bsp.charge(work / bsp.nprocs)

    for work in (4.0, 8.0):
        bsplib.run(main, work)
    """
    done = bsp(script, "--backend", "sim", "-n", "2", "--speedup")
    assert done.stderr.splitlines()[-2:] == [
        "speedup: T(1) 4 s / T(P) 2 s = 2",
        "speedup: T(1) 8 s / T(P) 4 s = 2",
    ]


@pytest.mark.lengthy
def test_only_the_first_run_is_recorded(bsp, tmp_path):
    script = SHARED_WORK.format(end="").replace('"sim"', '"sim", profile="said.bsp"')
    for options in ((), ("--profile", "given.bsp")):
        assert bsp(script, "-n", "3", "--speedup", *options).returncode == 0
    for name in ("said.bsp", "given.bsp"):
        assert [run.nprocs for run in read_trace(tmp_path / name).runs] == [3]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "bsplib.run(lambda bsp: bsp.partition([1, 2]).done(), backend='sim')",
            "no speedup: with nprocs = 1 the script ended by PartitionError: partition: ends",
        ),
        (
            "sys.exit(len(bsplib.run(lambda bsp: bsp.charge(1), backend='sim')) - 2)",
            "no speedup: with nprocs = 1 the script exited with status -1",
        ),
        (
            "[bsplib.run(lambda bsp: bsp.charge(1), backend='sim') for _ in "
            "bsplib.run(lambda bsp: bsp.charge(1), backend='sim')]",
            "no speedup: with nprocs = 1 the script made 2 runs on virtual processors instead of 3",
        ),
        (
            "bsplib.run(lambda bsp: bsp.charge(0), backend='sim')",
            "no speedup: the run took no virtual time",
        ),
        (
            "bsplib.run(lambda bsp: None)",
            "no speedup: the script ran nothing on virtual processors; use --backend sim",
        ),
    ],
)
def test_where_there_is_no_speedup_a_line_says_why(bsp, body, reason):
    done = bsp(f"import sys, bsplib\n{body}", "-n", "2", "--speedup")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].startswith(reason)


@pytest.mark.lengthy
def test_a_script_that_fails_fails_as_without_the_option(bsp):
    script = "import sys, bsplib\nbsplib.run(lambda bsp: None, backend='sim')\nsys.exit(3)"
    done = bsp(script, "-n", "2", "--speedup")
    assert done.returncode == 3
    assert "speedup" not in done.stderr
