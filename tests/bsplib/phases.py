"""Programs in which a fault happens to process 1, each in another phase of the program.

Each takes the group and a function that causes the fault, which is
:func:`something_elsewhere` on the other processes. It returns its results, which do not
depend on a fault that does no lasting damage.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import numpy as np

from bsplib.backends.shm.port import ShmPort
from bsplib.primitives import oblivious

VICTIM = 1
DEADLINE_S = 30
HAPPENED = "happened"
"""Name of a process to which it has happened."""

# -- how it comes to happen there -------------------------------------------------------------


def something_elsewhere():
    """Do nothing: it is process 1 to which something happens."""


def nothing():
    """Do nothing, and nowhere else either."""


class Once:
    """What lets something happen when it is used for the first time."""

    happens = None

    def use(self):
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()


class Values(Once):
    """Values for which something happens when they are asked for."""

    def __init__(self, happens, values):
        self.happens = happens
        self._values = values

    def __array__(self, dtype=None, copy=None):
        self.use()
        return np.array(self._values, dtype)

    def __reduce__(self):
        self.use()
        return list, (self._values,)


class Elements(Once, np.ndarray):
    """An array to which something happens when its elements are read or written."""

    def __getitem__(self, index):
        self.use()
        return super().__getitem__(index)

    def __setitem__(self, index, values):
        self.use()
        super().__setitem__(index, values)


def let_happen(bsp, x, happens):
    """Let it happen when the runtime uses the elements of what is registered."""
    registration = bsp._registry.named_by(x)  # it has a view of its own, of no class of the program
    registration.array = registration.array.view(Elements)
    registration.array.happens = happens


def eventually(condition):
    """Poll until a condition holds; False if it does not come to hold at all."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@contextmanager
def standard_error(path):
    """Give what reads all that this process, and those forked from it, write on standard error.

    It may read while they write. What ``capfd`` has read it takes away, with a line that
    comes just then.
    """
    with path.open("a") as stream, redirect_stderr(stream):
        yield path.read_text


def state_of(os_pid):
    """Return a process's state: R, S, T if it is stopped, Z if it is dead; none if gone."""
    try:
        return Path(f"/proc/{os_pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def has_happened(os_pid):
    """Tell whether it has happened to a process, also if that goes on since or is gone."""
    try:
        return Path(f"/proc/{os_pid}/comm").read_text() == f"{HAPPENED}\n"
    except OSError:
        return True


def let_it_happen_once(holds, happens):
    """Let a timer look ten times running whether something holds: that is at rest then.

    The process has another name from then on: who only looks now and then would miss that it was
    stopped.
    """
    found = 0

    def look(_, frame):
        nonlocal found
        codes = set()
        while frame is not None:
            codes.add(frame.f_code)
            frame = frame.f_back
        found = found + 1 if holds(codes) else 0
        if found == 10:
            signal.setitimer(signal.ITIMER_REAL, 0)
            Path("/proc/self/comm").write_text(HAPPENED)
            happens()

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def come_late(bsp, holds, happens):
    """Let it happen to process 1 while it waits for process 0, which comes after that.

    Args:
        bsp: the group.
        holds: tells from the code objects on the stack whether process 1 is there.
        happens: what happens.
    """
    os_pid = bsp.allgather(os.getpid())[VICTIM]
    if happens is nothing:
        return
    if bsp.pid == VICTIM:
        let_it_happen_once(holds, happens)
    elif bsp.pid == 0:
        assert eventually(lambda: has_happened(os_pid))


def inside(method):
    """Tell whether a method is on the stack."""
    return lambda codes: method.__code__ in codes


def everybody(bsp):
    return range(bsp.nprocs)


# -- between primitives -------------------------------------------------------------------------


def before_anything(bsp, happens):
    happens()
    bsp.sync()


def after_a_put(bsp, happens):
    x = bsp.zeros(2000)
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.full(2000, bsp.pid), x)
    happens()
    bsp.sync()
    return x.sum()


def in_a_partition(bsp, happens):
    with bsp.partition([2, bsp.nprocs]) as sub:
        sub.sync()
        happens()
        total = sub.allreduce(bsp.pid)
    bsp.sync()
    return total


def in_an_oblivious_superstep(bsp, happens):
    bsp.oblsync(0)
    happens()
    for pid in everybody(bsp):
        bsp.send(pid, bsp.pid)
    bsp.oblsync(bsp.nprocs)
    return [payload for _, _, payload in bsp.messages()]


BETWEEN = [before_anything, after_a_put, in_a_partition, in_an_oblivious_superstep]

# -- inside primitives --------------------------------------------------------------------------


def in_a_put(bsp, happens):
    """Something was put before, and something is after."""
    x = bsp.zeros(3 * 2000)
    right = (bsp.pid + 1) % bsp.nprocs
    bsp.put(right, np.full(2000, 1.0), x, offset=0)
    bsp.put(right, Values(happens, np.full(2000, bsp.pid)), x, offset=2000)
    bsp.put(right, np.full(2000, 2.0), x, offset=4000)
    bsp.sync()
    return x.reshape(3, 2000).sum(1).tolist()


def in_a_send(bsp, happens):
    bsp.send(0, Values(happens, (bsp.pid, bsp.nprocs)))
    bsp.sync()
    return [payload for _, _, payload in bsp.messages()]


INSIDE = [in_a_put, in_a_send]

# -- inside the end of a superstep --------------------------------------------------------------


def waiting_in_a_sync(bsp, happens):
    x = bsp.zeros(bsp.nprocs, int)
    come_late(bsp, inside(ShmPort.wait_for), happens)  # the core may have no frame
    for pid in everybody(bsp):
        bsp.put(pid, bsp.pid, x, offset=bsp.pid)
    bsp.sync()
    bsp.sync()
    return x.tolist()


def waiting_in_a_sync_of_a_partition(bsp, happens):
    with bsp.partition([2, bsp.nprocs]) as sub:
        total = waiting_in_a_sync(sub, happens) if bsp.pid < 2 else sub.nprocs
    bsp.sync()
    return total


def waiting_in_an_oblsync(bsp, happens):
    come_late(bsp, inside(oblivious.oblsync), happens)
    for pid in everybody(bsp):
        bsp.send(pid, bsp.pid)
    bsp.oblsync(bsp.nprocs)
    got = [payload for _, _, payload in bsp.messages()]
    bsp.sync()
    return got


def writing_what_was_put(bsp, happens):
    """Into every other element, hence one by one."""
    x = np.zeros((8, 2))[:, 0]
    bsp.push_reg(x)
    bsp.sync()
    bsp.put((bsp.pid + 1) % bsp.nprocs, [1, 2, 3, bsp.pid], x[::2])
    let_happen(bsp, x, happens)
    bsp.sync()
    bsp.sync()
    return x.tolist()


def reading_what_others_get(bsp, happens):
    x = np.arange(8)
    bsp.push_reg(x)
    bsp.sync()
    got = bsp.get(VICTIM, x[::2])
    let_happen(bsp, x, happens)
    bsp.sync()
    return got.tolist()


SYNCING = [
    waiting_in_a_sync,
    waiting_in_a_sync_of_a_partition,
    waiting_in_an_oblsync,
    writing_what_was_put,
    reading_what_others_get,
]


def waiting_at_the_end(bsp, happens):
    """Process 1 has returned from main."""
    main = sys._getframe(1).f_code
    come_late(bsp, lambda codes: main not in codes, happens)
    return bsp.pid
