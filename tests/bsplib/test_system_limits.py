"""Where the system allows few files, processes or addresses, a run works or names the limit."""

from __future__ import annotations

import os
import re
import shutil
import sys

import numpy as np
import pytest

from tests.processes import run_command

from .phases import DEADLINE_S

pytestmark = pytest.mark.timeout(2 * DEADLINE_S)

METHODS = ("fork", "forkserver", "spawn")
FILE_SIZES = (1 << 13, 1 << 22, 1 << 45)
SPAWN = pytest.param("spawn", marks=pytest.mark.slow)

SCRIPT = """
import os, resource, sys
import numpy as np
import bsplib

limit, method = sys.argv[1:]

def main(bsp):
    x = bsp.zeros(1000)
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(1000), x)
    bsp.sync()
    return int(x.sum())

def run():
    return bsplib.run(main, nprocs=3, start_method=method)

def run_in_pool():
    with bsplib.Pool(3, start_method=method) as pool:
        return pool.run(main)

def left():
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        names = [name for name in os.listdir("/dev/shm") if name.startswith("bsp_")]
        return children.read(), sorted(os.listdir("/proc/self/fd")), names

def tasks():
    # Processes and threads of this user, which are what the limit counts.
    mine = [pid for pid in os.listdir("/proc") if pid.isdigit() and owner(pid) == os.getuid()]
    return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in mine)

def owner(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Uid"))
    except OSError:
        return None

def tell(call):
    try:
        print(call())
    except bsplib.StartError as error:
        print(error)

if __name__ == "__main__":
    bsplib.run(main, nprocs=1, start_method=method)  # starts what multiprocessing starts once
    square = np.ones((300, 300))
    square @ square  # starts the threads of BLAS
    before = left()
    kind, value = limit.split("=")
    kind = getattr(resource, kind)
    value = int(value) + (tasks() if kind == resource.RLIMIT_NPROC else 0)
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value, hard))
    for call in (run, run_in_pool):
        tell(call)
        if left() != before:
            print("left behind:", before, left())
    square @ square
    resource.setrlimit(kind, (hard, hard))
    print(run())
"""

WORKS = "[1000, 1000, 1000]\n"


@pytest.mark.parametrize("method", ["fork", "forkserver", SPAWN])
def test_a_run_that_may_not_open_enough_files_says_how_many_it_needs(execute, method):
    done = execute(SCRIPT, "RLIMIT_NOFILE=20", method)
    assert done.stderr == ""
    said = (
        r"run: 3 processes need 21 file descriptors, and this process may open 1\d more "
        r"\(ulimit -n is 20\); raise the limit or ask for fewer processes\n"
    )
    assert re.fullmatch(2 * said + re.escape(WORKS), done.stdout), done.stdout


@pytest.mark.parametrize(
    ("nbytes", "method"),
    [
        *((nbytes, "fork") for nbytes in FILE_SIZES),
        *((1 << 22, method) for method in METHODS[1:]),
        *(
            pytest.param(nbytes, method, marks=pytest.mark.slow)
            for nbytes in (1 << 13, 1 << 45)
            for method in METHODS[1:]
        ),
    ],
)
def test_a_run_whose_files_may_not_be_large_enough_names_the_limit(execute, nbytes, method):
    done = execute(SCRIPT, f"RLIMIT_FSIZE={nbytes}", method)
    assert done.stderr == ""
    said = (
        r"run: the shared memory of 3 processes is one large file with holes, and files may have "
        rf"{nbytes} bytes only \(ulimit -f\); lift the limit by ulimit -f unlimited, or use "
        r"virtual processors \(--backend sim\)\n"
    )
    assert re.fullmatch(2 * said + re.escape(WORKS), done.stdout), done.stdout


@pytest.fixture
def as_other_user(script):
    """Run a script as a user who has no processes; root may have as many as it likes."""
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("only root can run a script as another user, with setpriv")

    def run_it(text, *args):
        user = str(100_000 + os.getpid())
        reads_all = "+dac_read_search"  # the interpreter may lie in a folder of root
        who = ["--reuid", user, "--regid", user, "--clear-groups"]
        may = ["--inh-caps", reads_all, "--ambient-caps", reads_all]
        return run_command(
            "setpriv", *who, *may, sys.executable, script(text), *args, timeout=DEADLINE_S
        )

    return run_it


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_run_that_may_not_start_enough_processes_says_so(as_other_user, method):
    """Under forkserver the limit is that of the fork server, which was there before."""
    done = as_other_user(SCRIPT, "RLIMIT_NPROC=1", method)
    assert done.stderr == ""
    said = (
        r"run: process [12] of 3 cannot be started: there may be no more processes and threads "
        r"\(ulimit -u is \d+\); raise the limit or ask for fewer processes\n"
    )
    assert re.fullmatch(2 * said + re.escape(WORKS), done.stdout), done.stdout


@pytest.mark.parametrize("method", ["fork", "forkserver", SPAWN])
def test_a_run_works_where_addresses_are_few(execute, method):
    done = execute(SCRIPT, f"RLIMIT_AS={1 << 30}", method)
    assert (done.stdout, done.stderr) == (3 * WORKS, "")


def test_an_array_for_which_there_are_no_addresses_is_an_error_and_smaller_ones_work(execute):
    done = execute("""
        import resource
        import numpy as np
        import bsplib

        def main(bsp):
            try:
                bsp.zeros(3 << 30, np.uint8)
            except bsplib.OutOfSharedMemoryError as error:
                said = str(error)
            x = bsp.zeros(1000)
            bsp.put(1 - bsp.pid, np.ones(1000), x)
            bsp.sync()
            return said, x.sum()

        if __name__ == "__main__":
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, -1))
            for said, total in bsplib.run(main, nprocs=2):
                print(total, said)
    """)
    assert done.stderr == ""
    for line in done.stdout.splitlines():
        assert re.match(
            r"1000.0 no addresses are left: 4294967296 bytes of shared memory cannot be "
            r"mapped, since a process may use 2147483648 \(ulimit -v\); use smaller arrays or "
            r"raise the limit \[process \d, superstep 0, script.py:8\]$",
            line,
        ), line
    assert len(done.stdout.splitlines()) == 2


# -- little shared memory, under every start method ---------------------------------------------

TINY = """
import os, sys
import numpy as np
import bsplib

def all_to_all(bsp):
    x = bsp.zeros(bsp.nprocs, int)
    for pid in range(bsp.nprocs):
        bsp.put(pid, bsp.pid, x, offset=bsp.pid)
    bsp.send((bsp.pid + 1) % bsp.nprocs, np.ones(100))
    bsp.sync()
    (message,) = bsp.messages()
    return int(x.sum()), bsp.allreduce(int(message[2].sum()))

def used():
    stat = os.statvfs("/dev/shm")
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize, os.listdir("/dev/shm")

if __name__ == "__main__":
    nprocs, method, full = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "full"
    if full:
        bsplib.run(all_to_all, nprocs=1, start_method=method)
        with open("/dev/shm/fills", "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
    before = used()
    try:
        print(set(bsplib.run(all_to_all, nprocs=nprocs, start_method=method)))
    except bsplib.OutOfSharedMemoryError as error:
        print(error)
    if used() != before:
        print("left behind:", before, used())
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", SPAWN])
def test_shared_memory_that_is_full_is_an_error_under_every_start_method(with_little, method):
    done = with_little(TINY, "3", method, "full", size="1m")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"shared memory is full: \d+ bytes more are needed and /dev/shm has 0 free; .*\n",
        done.stdout,
    )


@pytest.mark.parametrize("method", ["fork", "forkserver", SPAWN])
def test_little_shared_memory_suffices_under_every_start_method(with_little, method):
    done = with_little(TINY, "3", method, "free", size="256k")
    assert (done.stdout, done.stderr) == ("{(3, 300)}\n", "")


@pytest.mark.slow
def test_256_processes_fit_into_the_shared_memory_of_a_container(with_little):
    done = with_little(TINY, "256", "fork", "free", size="64m")
    assert (done.stdout, done.stderr) == (f"{{({256 * 255 // 2}, 25600)}}\n", "")


# -- memory is mapped as it is used ---------------------------------------------------------------


def addresses():
    """Bytes of addresses that this process has."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.lengthy
@pytest.mark.real_processes
@pytest.mark.procs(4)
def test_a_process_maps_what_it_uses_and_not_all_there_is(run):
    caller = addresses()

    def main(bsp):
        bsp.sync()
        before = addresses()
        x = bsp.zeros(10_000_000, np.uint8)
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(10_000_000, np.uint8), x)
        bsp.sync()
        return before, addresses()

    for before, after in run(main, start_method="fork"):
        assert before - caller < 64 << 20
        assert after - before < 20 * 10_000_000


@pytest.mark.real_processes
@pytest.mark.procs(2, 3)
def test_arrays_stay_where_they_are_while_memory_grows_and_all_can_be_reached(bsp):
    right = (bsp.pid + 1) % bsp.nprocs
    arrays = []
    for number in range(24):
        size = 1000 + 7 * (1 << number) if number < 20 else 100
        x = bsp.zeros(size, np.uint8)
        arrays.append((x, x.__array_interface__["data"][0]))
        bsp.hpput(right, np.full(size, number, np.uint8), x)
        bsp.sync()
    for number, (x, where) in enumerate(arrays):
        assert x.__array_interface__["data"][0] == where
        assert (x == number).all()
        got = bsp.get(right, x)
        bsp.put(right, np.full(x.size, number + 100, np.uint8), x)
        bsp.sync()
        assert (got == number).all()
        assert (x == number + 100).all()
