"""A recorded program ends as it would without the recorder, and what was recorded is readable."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bsplib.record.events import RUNNING, STOPPED, rank_files, read_rank
from bsplib.record.join import join
from tests.mpi_installations import MPICH
from tests.processes import run_command, run_python

from .conftest import DEADLINE_S, RECORDED, record, run, start

BEGIN = "import sys\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
MANY = BEGIN + "for _ in range(5000): comm.Barrier()\n"


def both(mpi, tmp_path, text, nprocs=2, **variables):
    """What a program does without and with the recorder."""
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    bare = run(mpi, nprocs, str(program), **variables)
    recorded = record(mpi, nprocs, tmp_path / "out.bsp", str(program), **variables)
    return bare, recorded


@pytest.mark.slow
def test_an_exit_status_is_that_of_the_program(mpi, tmp_path):
    bare, recorded = both(
        mpi, tmp_path, BEGIN + "comm.Barrier()\nsys.exit(3 * (comm.rank == 0))\n", 1
    )
    assert bare.status == recorded.status == 3


@pytest.mark.slow
def test_the_traceback_of_an_error_has_the_program_s_lines_only(mpi, tmp_path):
    text = BEGIN + "def f():\n    comm.Barrier()\n    raise ValueError('mine')\nf()\n"
    bare, recorded = both(mpi, tmp_path, text, 1)
    assert bare.status == recorded.status == 1
    of_both = [ran.errors[ran.errors.index("Traceback") :] for ran in (bare, recorded)]
    first, second = (text[: text.index("ValueError: mine")] for text in of_both)
    assert first == second


@pytest.mark.lengthy
def test_a_rank_that_is_killed_leaves_all_its_calls(mpi, tmp_path):
    text = BEGIN + (
        "import os\nfor _ in range(50): comm.Barrier()\n"
        "if comm.rank == 1: os.kill(os.getpid(), 9)\ncomm.Barrier()\n"
    )
    bare, recorded = both(mpi, tmp_path, text)
    assert bare.status != 0
    assert recorded.status != 0
    killed = recorded.ranks[1]
    assert killed.state == RUNNING
    assert killed.end is None
    assert len(killed.events) == 51


@pytest.mark.slow
def test_ctrl_c_on_the_launcher_ends_all_ranks_as_without_the_recorder(mpi, tmp_path):
    """By the signal that a terminal sends to the launcher and all that belong to it."""
    program = tmp_path / "program.py"
    program.write_text(
        BEGIN + "comm.Barrier()\nif comm.rank == 0: print('ready', flush=True)\n"
        "import time\ntime.sleep(60)\n"  # in MPI, the others would wait for who was interrupted
    )
    statuses = []
    for words in ((), ("-c", RECORDED, str(tmp_path / "out.bsp"))):
        process = start(mpi, 2, *words, str(program))
        try:
            assert process.stdout.readline() == "ready\n"
            os.killpg(process.pid, signal.SIGINT)
            process.wait(DEADLINE_S)
        finally:
            process.kill()
            process.communicate()
        statuses.append(process.returncode)
    assert statuses[0] == statuses[1] != 0
    ranks = read_ranks(tmp_path)
    assert len(ranks) == 2
    for rank in ranks:
        assert len(rank.events) >= 2
        assert (rank.events["leave"] >= rank.events["enter"]).all()
    assert join(tmp_path / "out.bsp.ranks").runs[0].nprocs == 2


@pytest.mark.slow
def test_a_call_that_hangs_is_the_open_call_of_a_rank(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(BEGIN + "import numpy\nprint('go', flush=True)\ncomm.Recv(numpy.zeros(1))\n")
    process = start(MPICH, 1, "-c", RECORDED, str(tmp_path / "out.bsp"), str(program))
    try:
        assert process.stdout.readline() == "go\n"
        until = time.monotonic() + DEADLINE_S
        while (opened := read_ranks(tmp_path)[0].open_call) is None and time.monotonic() < until:
            pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert opened["partner"] == -3


def read_ranks(tmp_path):
    return [read_rank(path) for path in rank_files(tmp_path / "out.bsp.ranks")]


@pytest.fixture
def small_disk(tmp_path):
    """A file system that is full after some hundred kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = run_command("mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder)
    if made.returncode:
        pytest.skip("a small file system cannot be mounted here (root is needed)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_costs_the_rest_of_the_recording_only(mpi, tmp_path, small_disk):
    program = tmp_path / "program.py"
    program.write_text(MANY + "print('done')\n")
    recorded = record(mpi, 1, small_disk / "out.bsp", str(program))
    assert (recorded.status, recorded.output) == (0, "done\n")
    assert "is not recorded any further: No space left on device; the program goes on" in (
        recorded.errors
    )
    (rank,) = recorded.ranks
    assert rank.state == STOPPED
    assert 1000 < len(rank.events) < 5000


THREADS = (
    BEGIN + "import threading, numpy\n"
    "def work(tag):\n"
    "    for _ in range(100):\n"
    "        comm.Sendrecv(numpy.ones(1), comm.rank, tag, numpy.ones(1), comm.rank, tag)\n"
    "threads = [threading.Thread(target=work, args=(tag,)) for tag in range(3)]\n"
    "[thread.start() for thread in threads]\n"
    "[thread.join() for thread in threads]\n"
    "print('done')\n"
)


@pytest.mark.slow
def test_calls_of_other_threads_are_left_out(mpi, tmp_path):
    bare, recorded = both(mpi, tmp_path, THREADS, 1)
    assert (bare.status, bare.output) == (recorded.status, recorded.output) == (0, "done\n")
    (rank,) = recorded.ranks
    assert 101 <= len(rank.events) <= 103


@pytest.mark.slow
def test_a_rank_loads_nothing_large_for_the_recorder(mpi, tmp_path):
    """All of these take memory in each rank."""
    large = {"flask", "networkx", "graphviz", "rich", "click", "numpy"}
    large |= {"hashlib", "subprocess", "shutil", "inspect"}
    text = f"import sys; from mpi4py import MPI; print(sorted({large} & sys.modules.keys()))\n"
    bare, recorded = both(mpi, tmp_path, text, 1)
    assert (recorded.status, recorded.output) == (0, bare.output) == (0, "[]\n")


@pytest.mark.slow
def test_a_program_can_be_a_module(mpi, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tool.py").write_text(BEGIN + "comm.Barrier()\nprint(sys.argv[1:], __package__)\n")
    ran = record(
        mpi,
        1,
        tmp_path / "out.bsp",
        "-m",
        "package.tool",
        "a",
        "-n",
        PYTHONPATH=":".join([str(tmp_path), mpi.whole_environment(1)["PYTHONPATH"]]),
    )
    assert ran.output == "['a', '-n'] package\n"
    names = {name for stack in ran.ranks[0].stacks for _, name, *_ in stack}
    assert names == {"<module>"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("out.bsp", "-m"), "name the module after -m"),
        (("out.bsp", "nosuch.py"), "there is no program nosuch.py; a module is named by -m"),
        (("program.py", "program.py"), "program.py exists and is not a trace; name another file"),
        (("nosuch/out.bsp", "program.py"), "/nosuch"),
    ],
)
@pytest.mark.lengthy
def test_a_mistake_in_the_command_is_one_sentence(words, sentence, tmp_path):
    (tmp_path / "program.py").write_text("print('runs')\n")
    done = run_python(
        "-m", "bsplib", "record", *words, cwd=tmp_path, env=MPICH.whole_environment(1)
    )
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


JOIN = """
import sys, pathlib
folder, out = sys.argv[1:]
names = sorted(path.name for path in pathlib.Path(folder).iterdir())
pathlib.Path(out).write_text(" ".join(names))
print("a word of the join")
"""


@pytest.mark.lengthy
def test_rank_0_joins_the_files_and_removes_them(mpi, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(BEGIN + "comm.Barrier()\nif comm.rank == 0: print('done')\n")
    (tmp_path / "made_join.py").write_text(JOIN)
    (tmp_path / "out.bsp.ranks").mkdir()
    (tmp_path / "out.bsp.ranks" / "rank-000002.rec").write_text("of an earlier job")
    variables = {"PYTHONPATH": f"{tmp_path}:{mpi.whole_environment(2)['PYTHONPATH']}"}
    code = RECORDED.replace("nosuch", "made_join")
    ran = run(mpi, 2, "-c", code, str(tmp_path / "out.bsp"), str(program), **variables)
    assert (ran.status, ran.output) == (0, "done\n")
    assert (tmp_path / "out.bsp").read_text() == "rank-000000.rec rank-000001.rec"
    assert not (tmp_path / "out.bsp.ranks").exists()
    assert "a word of the join" in ran.errors
    assert f"recorded in {tmp_path / 'out.bsp'}: bsp report" in ran.errors


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here")
@pytest.mark.slow
def test_many_ranks_compile_the_shim_once(mpi, tmp_path):
    cache = tmp_path / "cache"
    program = tmp_path / "program.py"
    program.write_text(BEGIN + "comm.Barrier()\n")
    counting = tmp_path / "cc"
    counting.write_text(f'#!/bin/sh\necho once >> {tmp_path}/compiled\nexec gcc "$@"\n')
    counting.chmod(0o755)
    ran = record(
        mpi, 2, tmp_path / "out.bsp", str(program), XDG_CACHE_HOME=str(cache), CC=str(counting)
    )
    assert (ran.status, len(ran.ranks)) == (0, 2)
    assert (tmp_path / "compiled").read_text() == "once\n"
    assert len(list(Path(cache).rglob("*.so"))) == 1
