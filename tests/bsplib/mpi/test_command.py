"""``bsp run --backend mpi`` replaces itself by a launcher, whose ranks all execute the script."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from bsplib.backends.hash_seed import VARIABLE
from bsplib.recording.trace import read_trace
from tests.mpi_installations import ALL
from tests.processes import run_command, run_python

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]

SCRIPT = """
import sys
import bsplib

print("outside", *sys.argv[1:])

def main(bsp):
    print("inside")
    bsp.sync()
    return hash("a text")

if __name__ == "__main__":
    print(len(set(bsplib.run(main))), len(bsplib.run(main)))
"""


@pytest.fixture
def bsp(mpi, tmp_path, nothing_left):
    """Run a command of bsp; return its status, output and errors."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(*words, **variables):
        words = [str(script) if word == "SCRIPT" else word for word in words]
        more = {"env": os.environ | variables, "cwd": tmp_path, "stdin": subprocess.DEVNULL}
        done = run_python("-m", "bsplib", *words, timeout=DEADLINE_S, **more)
        nothing_left(3)
        return done.returncode, done.stdout, done.stderr

    return run


def test_all_ranks_execute_the_script_and_rank_0_prints_outside_main(bsp, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    status, out, err = bsp("run", "--backend", "mpi", "-n", "3", "SCRIPT", "7")
    inside = [f"[{pid}] inside" for pid in range(3) for _ in range(2)]
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == sorted(["outside 7", *inside, "1 3"])


@pytest.mark.slow
def test_one_rank_is_a_run_on_mpi_too(bsp):
    status, out, _ = bsp("run", "--backend", "mpi", "-n", "1", "SCRIPT")
    assert (status, out.splitlines()[-1]) == (0, "1 1")


@pytest.mark.slow
def test_ranks_agree_on_hashes_where_the_launcher_keeps_the_environment_to_itself(bsp, mpi):
    start = f"{shlex.join(mpi.command(3))} -n 3 env -u {VARIABLE}"
    command = ("sh", "-c", f'shift 2; exec {start} "$@"', "sh")
    words = ("run", "--backend", "mpi", "-n", "3", "--mpiexec", shlex.join(command), "SCRIPT")
    status, out, err = bsp(*words, **mpi.variables(crowded=True))
    assert (status, err) == (0, "")
    assert "1 3" in out.splitlines()  # the launcher may show what another rank wrote after it


@pytest.mark.slow
def test_a_trace_is_written_and_named_once(bsp, tmp_path):
    status, _, err = bsp("run", "--backend", "mpi", "-n", "3", "--profile", "a.bsp", "SCRIPT")
    assert status == 0
    assert err.count("recorded in a.bsp") == 1
    assert [run.nprocs for run in read_trace(tmp_path / "a.bsp").runs] == [3, 3]


@pytest.mark.slow
def test_other_backends_are_refused_in_ranks(bsp, mpi):
    words = ["run", "--backend", "sim", "SCRIPT"]
    line = [*mpi.start(2, sys.executable, "-m", "bsplib", *words[:-1]), __file__]
    done = run_command(*line, env=mpi.whole_environment(2), timeout=DEADLINE_S)
    assert done.returncode != 0
    assert "mpiexec, or srun, has started 2 processes of this program, which run it" in done.stderr


def test_a_command_that_is_not_there_is_named(bsp):
    words = ("run", "--backend", "mpi", "--mpiexec", "no-such-mpiexec --fast", "SCRIPT")
    status, _, err = bsp(*words)
    assert (status, err) == (
        1,
        "Error: run: no-such-mpiexec --fast cannot be started: no such file or directory\n",
    )


def test_without_a_launcher_one_sentence_has_the_command_to_type(execute):
    done = execute("import bsplib\nbsplib.run(len, nprocs=3, backend='mpi')\n", "7")
    (line,) = (each for each in done.stderr.splitlines() if "StartError" in each)
    assert "a launcher of MPI has to start this program for the backend mpi; type: bsp run" in line
    assert line.endswith("script.py 7")
    assert "--backend mpi -n 3 " in line


@pytest.mark.slow
@pytest.mark.parametrize("installed", ALL, ids=lambda mpi: mpi.distribution)
def test_ranks_whose_mpi_finds_no_other_are_told_the_option_of_srun(installed, execute):
    if not installed.is_here():
        pytest.skip(f"{installed.title} is not installed: pip install -e '.[dev]'")
    text = """
    import os, sys
    os.environ.update(MPI4PY_LIBMPI=sys.argv[1], SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="4")
    import bsplib
    bsplib.run(len)
    """
    done = execute(text, str(installed.file(installed.library)))
    assert done.returncode == 1
    assert "the launcher has started 4 processes, and the MPI of each (" in done.stderr
    assert "(srun --mpi=pmix; srun --mpi=list shows all)" in done.stderr


@pytest.mark.slow
def test_a_sweep_runs_in_ranks_and_rank_0_writes(bsp, tmp_path):
    (tmp_path / "swept.py").write_text(
        "import bsplib\n"
        "def main(bsp, n):\n"
        "    x = bsp.zeros(n)\n"
        "    bsp.put((bsp.pid + 1) % bsp.nprocs, x + 1, x)\n"
        "    bsp.sync()\n"
        "if __name__ == '__main__':\n"
        "    bsplib.run(main, 10)\n"
    )
    words = ("--set", "n=10:20:x2", "--set", "nprocs=1:2:x2", "--repeats", "1", "swept.py")
    status, out, err = bsp("sweep", "--backend", "mpi", *words)
    assert status == 0, err
    assert err.count("traces in swept.sweep") == 1
    assert len([*(tmp_path / "swept.sweep").glob("*.bsp")]) == 4
    assert out.count("nprocs") >= 1
