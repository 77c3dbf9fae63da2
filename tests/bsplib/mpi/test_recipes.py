"""The job scripts of docs/mpi.md run as they stand there, on two hosts of this machine.

There is no Slurm, PBS or Kubernetes here. Small programs stand in for ``srun`` and for what starts
a job script: they set the variables and write the files that those set and write, and start the
ranks by the ``mpiexec`` of the MPI, which uses the agent of the hosts in place of ssh.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from bsplib.recording.trace import read_trace
from tests.hosts.launching import start_without_hosts
from tests.mpi_installations import ALL, MPICH
from tests.processes import run_command

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "mpi.md"
PROGRAM = """
import platform
import bsplib

def main(bsp):
    bsp.send((bsp.pid + 1) % bsp.nprocs, bsp.pid)
    bsp.sync()
    return [payload for _, _, payload in bsp.messages()], platform.node()

if __name__ == "__main__":
    print("came:", *bsplib.run(main))
"""
SRUN = """#!/bin/sh
count=$SLURM_NTASKS
while :; do
    case $1 in
        --mpi=* | --kill-on-bad-exit=*) shift ;;
        -n) count=$2; shift 2 ;;
        *) break ;;
    esac
done
exec mpiexec -n $count --hostfile {hostfile} env "PATH=$PATH" sh -c '
    export SLURM_PROCID=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} SLURM_STEP_NUM_TASKS=$0
    unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
    exec "$@"' $count "$@"
"""
ACTIVATE = "VIRTUAL_ENV=$HOME/venv PATH=$HOME/venv/bin:$PATH; export VIRTUAL_ENV PATH\n"


def where(hosts):
    """The host of each rank: two on each of two hosts."""
    return [name for name in hosts.names[:2] for _ in range(2)]


def blocks(heading, language):
    """The blocks of a language below a heading of the page."""
    _, _, below = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")
    section = re.split("\n###? ", below)[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture(params=ALL, ids=lambda mpi: mpi.distribution)
def mpi(request):
    if not request.param.is_here():
        pytest.skip(f"{request.param.title} is not installed: pip install -e '.[dev]'")
    return request.param


@pytest.fixture
def site(hosts, mpi, tmp_path):
    """Make what a site has: a home with a venv, an mpiexec, srun, and the file of the hosts."""
    (tmp_path / "script.py").write_text(PROGRAM)
    (tmp_path / "nodes").write_text("".join(f"{name}\n" for name in where(hosts)))
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    start = shlex.join(map(str, start_without_hosts(hosts, mpi)))
    write(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    write(programs / "bsp", f'#!/bin/sh\nexec {sys.executable} -m bsplib "$@"\n')
    for name in ("mpiexec", "mpirun"):
        write(programs / name, f'#!/bin/sh\nexec {start} "$@"\n')
    write(programs / "srun", SRUN.format(hostfile=tmp_path / "nodes"))
    write(programs / "activate", ACTIVATE)
    return tmp_path


def write(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def submit(hosts, mpi, site):
    """Run a command on host 0 with the variables of a job; check what the program did."""

    def submit_it(*command, **variables):
        known = {name: text for name, text in os.environ.items() if name != "PATH"}
        environment = {**known, "PATH": "/usr/bin:/bin", **mpi.variables(crowded=True), **variables}
        done = run_command(*hosts.on(0, *command), env={**environment, "HOME": str(site)}, cwd=site)
        assert done.returncode == 0, done.stderr
        came = [([(pid - 1) % 4], name) for pid, name in enumerate(where(hosts))]
        assert f"came: {' '.join(map(str, came))}\n" in done.stdout

    return submit_it


def check_trace(hosts, site):
    (run,) = read_trace(site / "sort.bsp").runs
    assert run.meta["hosts"] == where(hosts)


def test_a_job_script_of_slurm_runs(hosts, site, submit):
    script = site / "job.sh"
    (text,) = blocks("Slurm", "sh")
    script.write_text(text)
    assert "#SBATCH --nodes=4" in script.read_text()
    submit("bash", script, SLURM_NTASKS="4", SLURM_PROCID="0", SLURM_JOB_NUM_NODES="2")
    check_trace(hosts, site)


def test_a_job_script_of_pbs_runs(hosts, site, submit):
    script = site / "job.sh"
    (text,) = blocks("PBS", "sh")
    script.write_text(text)
    nodes = str(site / "nodes")
    submit("bash", script, PBS_O_WORKDIR=str(site), PBS_NODEFILE=nodes, PBS_JOBID="1.server")
    check_trace(hosts, site)


def test_the_command_of_a_job_of_kubernetes_runs(hosts, mpi, site, submit):
    (text,) = blocks("Kubernetes", "yaml")
    launcher = text.split("Launcher:")[1].split("Worker:")[0]
    command = json.loads(re.search(r"command: (\[.*?\])", launcher, re.DOTALL)[1])
    names = dict.fromkeys(where(hosts))
    slots = (f"{name}:2\n" if mpi == MPICH else f"{name} slots=2\n" for name in names)
    (site / "hostfile").write_text("".join(slots))
    here = {"64": "4", "/etc/mpi/hostfile": site / "hostfile", "mpirun": site / "venv/bin/mpirun"}
    words = [str(here.get(word, word)).replace("/app/", f"{site}/") for word in command]
    submit(*words, K_MPI_JOB_ROLE="launcher")
