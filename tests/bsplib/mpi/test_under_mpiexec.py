"""A program that a launcher starts as all its ranks: ``mpiexec -n 3 python prog.py``."""

from __future__ import annotations

import re
import sys
import textwrap

import pytest

from bsplib.recording.trace import read_trace

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * DEADLINE_S)]

SIZE = 3
BEGINNING = """
import os, sys
import bsplib

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or
           os.environ["SLURM_PROCID"])

def say(*words):
    os.write(1, (" ".join(map(str, (RANK, *words))) + "\\n").encode())

def who(bsp):
    bsp.sync()
    return bsp.pid

def fail(bsp, how):
    bsp.sync()
    if bsp.pid == 1 and how == "raise":
        raise KeyError("ill")
    if bsp.pid == 1 and how == "exit":
        sys.exit(3)
    bsp.sync()
    bsp.sync()

def attempt(*arguments, **options):
    try:
        say(bsplib.run(*arguments, **options))
    except Exception as error:
        say(type(error).__name__, str(error).splitlines()[0])
"""
SRUN = """#!{python}
import os, subprocess, sys
# As srun: it numbers the processes of a step, while the ranks find each other by their MPI.
text = (
    "import os, sys\\n"
    "rank = os.environ.get('OMPI_COMM_WORLD_RANK') or os.environ['PMI_RANK']\\n"
    "os.environ['SLURM_PROCID'] = rank\\n"
    "os.environ['SLURM_STEP_NUM_TASKS'] = '3'\\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\\n"
)
sys.exit(subprocess.call([*{command!r}, "-n", "3", sys.executable, "-c", text, *sys.argv[1:]]))
"""


@pytest.fixture
def start(program, mpi, tmp_path):
    """Start a program in all processes of a launcher."""

    def begin(text, *, size=SIZE, before=None, variables=(), **others):
        values = mpi.variables(crowded=True) | {"PYTHONHASHSEED": "0"} | dict(variables) | others
        values.pop("MPI4PY_LIBMPI")
        launcher = before or (*mpi.command(size), "-n", str(size))
        settings = [f"{name}={value}" for name, value in values.items()]
        command = ("env", *settings, *launcher, sys.executable)
        return program(BEGINNING + textwrap.dedent(text), *command)

    return begin


@pytest.fixture
def outcome(start, nothing_left):
    """Run a program in all processes; return its status, sorted lines of output, and errors."""

    def run(text, **options):
        started = start(text, **options)
        out, err = started.communicate(timeout=DEADLINE_S)
        nothing_left(2)
        return started.returncode, sorted(out.splitlines()), err

    return run


def in_all(*lines):
    """Return the lines that all ranks print."""
    return sorted(f"{rank} {line}" for rank in range(SIZE) for line in lines)


def test_all_processes_are_those_of_one_run_and_get_its_results(outcome):
    status, lines, err = outcome("attempt(who)")
    assert (status, lines, err) == (0, in_all("[0, 1, 2]"), "")


def test_several_runs_and_pools_work_one_after_the_other(outcome):
    text = """
    class Pair:
        def __init__(self, number):
            self.number = number

    def pairs(bsp):
        return Pair(bsp.pid)

    attempt(who, nprocs=3)
    found = bsplib.run(pairs)
    say([pair.number for pair in found if isinstance(pair, Pair)])
    with bsplib.Pool() as pool:
        say(pool.nprocs, pool.run(who), pool.run(lambda bsp: bsp.nprocs))
    attempt(who, backend="mpi")
    """
    status, lines, err = outcome(text)
    expected = ["[0, 1, 2]", "[0, 1, 2]", "3 [0, 1, 2] [3, 3, 3]", "[0, 1, 2]"]
    assert (status, lines, err) == (0, in_all(*expected), "")


def test_main_computes_with_one_blas_thread_and_the_rest_of_the_program_with_all(outcome):
    text = """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.pop(name, None)
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads(bsp):
        return {pool["num_threads"] for pool in threadpool_info()}

    with threadpool_limits(2):
        attempt(threads)
        say(threads(None))
    """
    status, lines, err = outcome(text)
    assert (status, lines, err) == (0, in_all("[{1}, {1}, {1}]", "{2}"), "")


def test_large_results_reach_all_ranks(outcome):
    text = """
    def large(bsp):
        return bytes(5_000_000)

    say(sum(map(len, bsplib.run(large))))
    """
    status, lines, _ = outcome(text)
    assert (status, lines) == (0, in_all("15000000"))


def test_what_processes_and_the_lines_between_print_comes_whole(outcome):
    text = """
    def talk(bsp):
        print("hello", bsp.pid)

    os.write(1, f"before {RANK}\\n".encode())  # print may write a line in parts
    bsplib.run(talk)
    os.write(1, f"after {RANK}\\n".encode())
    """
    status, lines, _ = outcome(text)
    words = ("after", "before", "hello")
    assert (status, lines) == (0, [f"{word} {rank}" for word in words for rank in range(SIZE)])


def test_all_ranks_raise_the_error_of_a_run_and_go_on(outcome):
    text = """
    attempt(fail, "raise")
    attempt(who)
    attempt(fail, "exit")
    attempt(who, missing=2)
    attempt(who)
    """
    status, lines, _ = outcome(text)
    assert status == 0
    died = "ProcessDiedError process 1 ended by sys.exit(3) in superstep 1; return from main"
    assert [line for line in lines if "missing" not in line] == in_all(
        "KeyError 'ill'", died, "[0, 1, 2]", "[0, 1, 2]"
    )
    assert len([line for line in lines if "missing" in line]) == SIZE


def test_an_error_that_nobody_handles_ends_all_ranks_and_is_printed_once(outcome):
    status, lines, err = outcome("bsplib.run(fail, 'raise')\nsay('not here')")
    assert (status != 0, [line for line in lines if "not here" in line]) == (True, [])
    assert len(re.findall("Traceback .most recent call last", err)) == 2  # the first is remote


@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_between_runs_in_one_rank_ends_all(outcome, rank):
    text = f"""
    attempt(who)
    if RANK == {rank}:
        raise ValueError("alone")
    attempt(who)
    """
    status, _, err = outcome(text)
    assert status != 0
    assert err.count("ValueError: alone") == 1


def test_a_rank_that_makes_one_call_less_or_more_is_told(outcome):
    every = "all processes that the launcher has started have to make the same calls"
    line = len(BEGINNING.splitlines()) + 2
    call, end = f"calls bsplib at program.py:{line}", "has come to the end of its program"
    status, _, err = outcome("bsplib.run(who)\nif RANK != 1: bsplib.run(who)")
    assert status == 1
    assert err.count(f"bsplib: call 2: process 0 {call}, and process 1 {end}; {every}\n") == 1
    status, _, err = outcome("bsplib.run(who)\nif RANK == 1: bsplib.run(who)")
    assert status == 1
    assert err.count(f"bsplib: call 2: process 0 {end}, and process 1 {call}; {every}\n") == 1


def test_calls_at_different_lines_are_told(outcome):
    status, _, err = outcome("if RANK == 2: bsplib.run(who)\nelse: bsplib.run(who)")
    first = len(BEGINNING.splitlines()) + 1
    assert status == 1
    assert (
        f"process 0 calls bsplib at program.py:{first + 1}, and process 2 calls bsplib at "
        f"program.py:{first}; all" in err
    )


def test_what_cannot_be_one_run_of_all_is_refused_in_each_rank(outcome):
    text = """
    attempt(who, backend="shm")
    attempt(who, backend="sim")
    attempt(who, nprocs=4)
    attempt(who)
    attempt(who, nprocs=2)
    """
    status, lines, _ = outcome(text)
    asked = (
        "UsageError run: backend is '{}', and mpiexec, or srun, has started 3 processes of this "
        "program, which run it together on mpi: leave the backend out, or start the program "
        "without it"
    )
    count = (
        "ProcessRangeError run: nprocs is 4, and mpiexec, or srun, has started 3 processes: leave "
        "nprocs out, or start as many"
    )
    expected = in_all(asked.format("shm"), asked.format("sim"), count, "[0, 1, 2]", "[0, 1]")
    assert (status, lines) == (0, expected)


def test_threads_may_run_and_the_program_may_have_started_mpi(outcome):
    text = """
    import threading
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    from mpi4py import MPI
    attempt(who)
    over.set()
    thread.join()
    say(MPI.COMM_WORLD.allreduce(1))
    """
    status, lines, err = outcome(text)
    assert (status, lines, err) == (0, in_all("3", "[0, 1, 2]"), "")


def test_arguments_are_those_of_rank_0_and_classes_of_the_script_those_of_each_rank(outcome):
    text = """
    class Pair:
        def __init__(self, number):
            self.number = number

    def main(bsp, pair):
        return pair.number, isinstance(pair, Pair)

    def call(bsp, function):
        return function(bsp.pid)

    attempt(main, Pair(10 + RANK))
    attempt(call, lambda pid: pid + 10 * RANK)
    """
    status, lines, err = outcome(text)
    expected = in_all("[(10, True), (10, True), (10, True)]", "[0, 1, 2]")
    assert (status, lines, err) == (0, expected, "")


def test_without_mpi4py_one_sentence_says_so(outcome):
    status, lines, _ = outcome("sys.modules['mpi4py'] = None\nattempt(who)")
    assert status == 0
    assert [line.split()[1] for line in lines] == SIZE * ["MissingExtraError"]


def test_one_rank_records_one_trace_of_all_runs(outcome, tmp_path):
    path = tmp_path / "one.bsp"
    text = f"""
    attempt(who, profile={str(path)!r})
    attempt(who, profile={str(path)!r})
    """
    status, lines, err = outcome(text)
    assert (status, lines, err) == (0, in_all("[0, 1, 2]", "[0, 1, 2]"), "")
    assert [(run.nprocs, run.complete) for run in read_trace(path).runs] == 2 * [(SIZE, True)]
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".bsp")] == []


def test_runs_inside_main_and_in_further_programs_are_their_own(outcome):
    text = """
    import subprocess

    def nested(bsp):
        return bsplib.run(who, nprocs=2, backend="sim"), bsplib.run(who, nprocs=2)

    if __name__ != "__main__":
        pass
    elif "again" in sys.argv:
        say(bsplib.run(who, nprocs=2))
    else:
        say(bsplib.run(nested) == 3 * [([0, 1], [0, 1])])
        subprocess.run([sys.executable, __file__, "again"], check=True)  # of no launcher
    """
    status, lines, err = outcome(text)
    assert err == ""
    assert (status, lines) == (0, in_all("True", "[0, 1]"))


def test_processes_of_srun_are_those_of_one_run(outcome, mpi, tmp_path):
    srun = tmp_path / "srun"
    srun.write_text(SRUN.format(python=sys.executable, command=mpi.command(SIZE)))
    srun.chmod(0o700)
    status, lines, _ = outcome("attempt(who)", before=(str(srun),))
    assert (status, lines) == (0, in_all("[0, 1, 2]"))


def test_the_batch_step_of_slurm_is_no_rank(outcome):
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1", "SLURM_NPROCS": "4"}
    status, lines, _ = outcome("attempt(who, nprocs=2)", before=("env",), variables=batch)
    assert (status, lines) == (0, ["0 [0, 1]"])


def test_ranks_whose_texts_have_different_hashes_are_pointed_out_once(outcome):
    status, lines, err = outcome("attempt(who)", PYTHONHASHSEED="random")
    assert (status, lines) == (0, in_all("[0, 1, 2]"))
    assert err.count("RuntimeWarning: hash() of a text and the order of a set differ") == 1
