"""Processes that are killed or stopped leave nothing behind.

Only real processes can be killed, hence these tests run on one backend.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.backends import outcomes

from .leftovers import children, nothing_stays_in_shared_memory, shared_memory
from .phases import (
    BETWEEN,
    DEADLINE_S,
    INSIDE,
    SYNCING,
    VICTIM,
    Values,
    after_a_put,
    before_anything,
    eventually,
    in_a_partition,
    nothing,
    something_elsewhere,
    standard_error,
    state_of,
    waiting_at_the_end,
)

pytestmark = [
    pytest.mark.timeout(DEADLINE_S),
    pytest.mark.fresh,
    pytest.mark.real_processes,
    pytest.mark.not_on_mpi("mpi/test_faults.py has the tests of ranks"),
]


@pytest.fixture
def run(nprocs, backend):
    """Run in processes that can be killed."""
    return functools.partial(bsplib.run, nprocs=nprocs, backend=backend)


# -- one process dies -------------------------------------------------------------------------


def die(how):
    if isinstance(how, signal.Signals):
        os.kill(os.getpid(), how)
    else:
        os._exit(how)


WAYS = {
    "SIGKILL": (signal.SIGKILL, "was killed by SIGKILL"),
    "SIGTERM": (signal.SIGTERM, "was killed by SIGTERM"),
    "SIGSEGV": (signal.SIGSEGV, "was killed by SIGSEGV"),
    "status 0": (0, "exited with status 0"),
    "status 5": (5, "exited with status 5"),
}


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize(("how", "words"), WAYS.values(), ids=WAYS)
def test_the_death_of_a_process_names_pid_way_and_superstep(run, nprocs, how, words):
    def main(bsp):
        for _ in range(4):
            bsp.sync()
        if bsp.pid == bsp.nprocs - 1:
            die(how)
        bsp.sync()

    with pytest.raises(
        bsplib.ProcessDiedError, match=rf"process {nprocs - 1} {words} in superstep 4"
    ) as raised:
        run(main)
    assert (raised.value.pid, raised.value.superstep) == (nprocs - 1, 4)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def exits_at_once():
    os._exit(3)


def exits():
    sys.exit(3)


def raises():
    raise KeyError("of process 1")


FAULTS = {
    killed: (bsplib.ProcessDiedError, "^process 1 was killed by SIGKILL in superstep"),
    exits_at_once: (bsplib.ProcessDiedError, "^process 1 exited with status 3 in superstep"),
    exits: (bsplib.ProcessDiedError, r"^process 1 ended by sys.exit\(3\) in superstep"),
    raises: ((KeyError, bsplib.MessageError), "of process 1"),
}
"""What is raised; what cannot be pickled is a message's fault."""


def while_others_compute(bsp, happens):
    happens()
    while True:
        np.sort(np.random.default_rng(1).random(1000))


def victim_of(fault):
    """What happens on process 1, and does not on the others."""
    return lambda bsp: fault if bsp.pid == VICTIM else something_elsewhere


PHASES = [*BETWEEN, *INSIDE, *SYNCING, waiting_at_the_end, while_others_compute]
DEATHS = [(fault, phase) for fault in (killed, exits_at_once) for phase in PHASES]


def run_with(run, phase, fault):
    happens = victim_of(fault)
    error, words = FAULTS[fault]
    with pytest.raises(error, match=words):
        run(lambda bsp: phase(bsp, happens(bsp)))


@pytest.mark.procs(2, 4)
@pytest.mark.parametrize(("fault", "phase"), DEATHS, ids=lambda each: each.__name__)
def test_a_process_may_die_in_any_phase_and_all_stop(run, nothing_is_left, phase, fault):
    run_with(run, phase, fault)


@pytest.mark.procs(3)
@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
@pytest.mark.parametrize("fault", [raises, exits], ids=lambda fault: fault.__name__)
@pytest.mark.slow
def test_a_process_may_raise_or_exit_in_any_phase_and_all_stop(run, nothing_is_left, phase, fault):
    run_with(run, phase, fault)


@pytest.mark.procs(3)
@pytest.mark.parametrize("wait", ["auto", "spin", "block"])
def test_a_process_that_waits_in_a_sync_may_be_killed_by_another(run, nothing_is_left, wait):
    def main(bsp):
        os_pid = bsp.allgather(os.getpid())[VICTIM]
        if bsp.pid == 0:
            os.kill(os_pid, signal.SIGKILL)
            while True:
                bsp.sync()
        bsp.sync()

    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(main, wait=wait)


@pytest.mark.procs(2)
def test_a_process_that_loses_its_memory_while_it_is_copied_is_a_death(
    run, nothing_is_left, tmp_path
):
    """The file that is mapped is cut off: the copy itself is what kills."""

    def main(bsp):
        path = tmp_path / str(bsp.pid)
        path.write_bytes(bytes(1 << 16))
        values = np.memmap(path, mode="r+")
        x = bsp.zeros(len(values), np.uint8)
        bsp.sync()
        if bsp.pid == VICTIM:
            os.truncate(path, 1 << 15)
        bsp.put(0, values, x)
        bsp.sync()

    with pytest.raises(
        bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGBUS in superstep 1"
    ):
        run(main)


class Pid:
    """A pid that is asked for when some values are."""

    def __init__(self, values):
        self._values = values

    def __index__(self):
        self._values.use()
        return 0


CALLS = {
    "put": lambda bsp, to, values, x: bsp.put(to, values, x),
    "hpput": lambda bsp, to, values, x: bsp.hpput(to, values, x[:]),
    "put_at": lambda bsp, to, values, x: bsp.put_at(to, [0, 1, 2, 3], values, x),
    "get": lambda bsp, to, values, x: bsp.get(Pid(values), x, x),
    "send": lambda bsp, to, values, x: bsp.send(to, values),
}


@pytest.mark.procs(1, 2, 3, 8)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_raised_inside_a_primitive_may_be_caught_and_nothing_was_transferred(
    run, nprocs, call
):
    def main(bsp):
        x = bsp.zeros(4)
        bsp.sync()
        right = (bsp.pid + 1) % bsp.nprocs
        with pytest.raises((KeyError, bsplib.MessageError)):
            call(bsp, right, Values(raises, 1), x)
        bsp.put(right, 5, x[1:2])
        bsp.oblsync(1)
        bsp.sync()
        return x.tolist(), bsp.qsize()

    assert run(main) == [([0, 5, 0, 0], (0, 0))] * nprocs


@pytest.mark.procs(2)
def test_a_process_killed_while_it_hands_over_its_result_is_a_death(run):
    class Fatal:
        def __reduce__(self):
            os.kill(os.getpid(), signal.SIGKILL)

    def main(bsp):
        return Fatal() if bsp.pid else None

    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(main)


@pytest.mark.procs(4)
def test_all_processes_may_die_at_once(run):
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 0 was killed by SIGKILL"):
        run(lambda bsp: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.procs(2)
def test_a_thread_that_the_program_leaves_behind_does_not_hold_the_run(run):
    def main(bsp):
        import threading  # noqa: PLC0415  # what a program may do

        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return bsp.pid

    assert run(main) == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["run", "pool", "spawn"])
def test_a_thread_that_holds_the_end_of_a_run_is_named(execute, how):
    done = execute(
        """
        import sys, threading, time
        import bsplib

        def main(bsp):
            if bsp.pid == 1:
                threading.Thread(target=time.sleep, args=(1.5,), name="collector").start()
            threading.Thread(target=bsp.time, name="short").start()
            return bsp.pid

        if __name__ == "__main__":
            if sys.argv[1] == "pool":
                with bsplib.Pool(2) as pool:
                    print(pool.run(main))
            else:
                method = None if sys.argv[1] == "run" else sys.argv[1]
                print(bsplib.run(main, nprocs=2, start_method=method))
        """,
        how,
    )
    assert done.stdout == "[0, 1]\n"
    assert done.stderr == (
        "bsplib: the end of the run waits for process 1, in which main has ended and these threads "
        "run on: 'collector'; join them in main, or make them with daemon=True\n"
    )


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_caller_that_ignores_the_ends_of_its_children_can_run(execute, method):
    done = execute(
        """
        import os, signal, sys
        import bsplib

        def main(bsp, dies):
            bsp.sync()
            if dies and bsp.pid == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            bsp.sync()
            return bsp.pid

        if __name__ == "__main__":
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            print(bsplib.run(main, False, nprocs=2, start_method=sys.argv[1]))
            try:
                bsplib.run(main, True, nprocs=2, start_method=sys.argv[1])
            except bsplib.ProcessDiedError as error:
                print(error)
        """,
        method,
    )
    assert done.stderr == ""
    results, error = done.stdout.splitlines()
    assert results == "[0, 1]"
    assert re.match(r"process 1 (was killed by SIGKILL|ended \(its status is unknown)", error)


# -- one process is stopped ---------------------------------------------------------------------


@pytest.fixture
def stop(tmp_path):
    """Stop process 1 of a run, and do something when it stands still."""
    path = tmp_path / "stopped"
    over = threading.Event()
    helpers = []

    def stopped():
        path.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)

    def stands_still():
        return path.exists() and state_of(path.read_text()) == "T"

    def then(act):
        def wait_and_act():
            eventually(lambda: over.is_set() or stands_still())
            if not over.is_set():
                act(int(path.read_text()), over)

        helpers.append(threading.Thread(target=wait_and_act))
        helpers[-1].start()
        return victim_of(stopped)

    yield then
    over.set()
    for helper in helpers:
        helper.join()


STOPPED = [*BETWEEN, *INSIDE, *SYNCING]


def continue_when_named(said):
    """Return what continues process 1 once it has been said that it is stopped."""

    def go_on(os_pid, over):
        named = (
            "bsplib: the run waits for process 1, which is stopped; continue it "
            f"(kill -CONT {os_pid}) or end the run\n"
        )
        if eventually(lambda: over.is_set() or named in said()):
            os.kill(os_pid, signal.SIGCONT)

    return go_on


@pytest.mark.procs(3)
@pytest.mark.parametrize("phase", STOPPED, ids=lambda phase: phase.__name__)
def test_a_process_may_be_stopped_in_any_phase_is_named_and_goes_on(
    run, nothing_is_left, stop, tmp_path, monkeypatch, phase
):
    monkeypatch.setattr(outcomes, "_LOOK_S", 0.2)
    with standard_error(tmp_path / "said") as said:
        happens = stop(continue_when_named(said))
        results = run(lambda bsp: phase(bsp, happens(bsp)), start_method="fork")
    assert results == run(lambda bsp: phase(bsp, nothing))
    assert set(re.findall(r"waits for process (\d+)", said())) == {"1"}


def handing_over_its_result(bsp, happens):
    return Values(happens, (bsp.pid,))


@pytest.mark.lengthy
@pytest.mark.procs(3)
@pytest.mark.parametrize(
    "phase", [waiting_at_the_end, handing_over_its_result], ids=lambda phase: phase.__name__
)
def test_a_process_that_is_stopped_after_all_others_have_ended_is_named_by_the_run(
    run, nothing_is_left, stop, tmp_path, monkeypatch, phase
):
    monkeypatch.setattr(outcomes, "_LOOK_S", 0.2)
    with standard_error(tmp_path / "said") as said:
        happens = stop(continue_when_named(said))
        results = run(lambda bsp: phase(bsp, happens(bsp)), start_method="fork")
    assert results == run(lambda bsp: phase(bsp, nothing))
    assert said().count("waits for") == 1


@pytest.mark.procs(3)
@pytest.mark.parametrize("phase", [*STOPPED, waiting_at_the_end], ids=lambda phase: phase.__name__)
@pytest.mark.slow
def test_a_process_may_be_killed_where_it_stands_and_all_stop(run, nothing_is_left, stop, phase):
    happens = stop(lambda os_pid, over: os.kill(os_pid, signal.SIGKILL))
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(lambda bsp: phase(bsp, happens(bsp)), start_method="fork")


@pytest.mark.procs(3)
@pytest.mark.lengthy
def test_a_process_that_is_stopped_does_not_hold_up_the_end_of_a_run_that_failed(
    run, nothing_is_left, stop
):
    happens = stop(lambda os_pid, over: None)

    def main(bsp):
        os_pid = bsp.allgather(os.getpid())[VICTIM]
        happens(bsp)()
        if bsp.pid == 2:
            assert eventually(lambda: state_of(os_pid) == "T")
            raise KeyError("of process 2")
        bsp.sync()

    with pytest.raises(KeyError, match="of process 2"):
        run(main, start_method="fork")


# -- nothing is left ---------------------------------------------------------------------------


@pytest.mark.procs(3)
@pytest.mark.lengthy
def test_runs_that_fail_leave_no_descriptor_no_child_and_no_name(run):
    def main(bsp, phase, fatal):
        phase(bsp, fatal if bsp.pid == 1 else lambda: None)

    def raises():
        raise KeyError

    def fail():
        for phase in (before_anything, after_a_put, in_a_partition):
            for fatal in (raises, lambda: die(1), lambda: sys.exit(1)):
                with pytest.raises((KeyError, bsplib.ProcessDiedError)):
                    run(main, phase, fatal)

    fail()
    names = shared_memory()
    before = (os.listdir("/proc/self/fd"), children(os.getpid()))
    fail()
    assert (os.listdir("/proc/self/fd"), children(os.getpid())) == before
    assert nothing_stays_in_shared_memory(names)


@pytest.mark.procs(2)
@pytest.mark.lengthy
def test_mapped_memory_is_given_back(run):
    def mapped():
        return len(Path("/proc/self/maps").read_text().splitlines())

    def main(bsp):
        return bsp.zeros(1000)

    for _ in range(3):
        run(main)
    before = mapped()
    for _ in range(12):
        run(main)
    assert mapped() < before + 10
