"""Make the page of mistakes: run a program with each of them, and write what bsplib says.

``python docs/mistakes.py`` writes docs/mistakes.md beside it. A test runs every program and
compares what it says with the page.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = "  # here"
"""Stands in each program behind the line that the message names."""
FILE = "mistake.py"
PAGE = Path(__file__).with_suffix(".md")


class Mistake(NamedTuple):
    """A mistake: a program that makes it, and what there is to know about it."""

    title: str
    body: str
    """The program, without the imports of bsplib and without its last lines."""
    out: str
    """The way out, as sentences."""
    says: Sequence[str] = ()
    """What has to be in the message: the offending value, the process, the way out."""
    runs: str = "bsplib.run(main, nprocs=2)"
    legal: bool = False
    """bsplib does what the program says; the page shows what that is."""

    @property
    def program(self) -> str:
        """The whole program."""
        return (
            f'import bsplib\n{self.body.rstrip()}\n\nif __name__ == "__main__":\n    {self.runs}\n'
        )

    @property
    def line(self) -> int | None:
        """Number of the line that the message has to name; None if none is marked."""
        for number, line in enumerate(self.program.splitlines(), 1):
            if line.endswith(HERE):
                return number
        return None


MISTAKES = (
    Mistake(
        "A process that is not there",
        """
def main(bsp):
    x = bsp.zeros(4)
    bsp.put(bsp.pid + 1, [1.0], x, offset=0)  # here
    bsp.sync()
""",
        "Processes are numbered from 0. Where each has a right neighbour, as in a ring, it is "
        "`(bsp.pid + 1) % bsp.nprocs`; where the last one has none, leave it out by an `if`.",
        ["no process 2 among 2 (0 to 1)", "[process 1,"],
    ),
    Mistake(
        "More values than there is room for",
        """
def main(bsp):
    x = bsp.zeros(4)
    bsp.sync()
    bsp.put(0, [1.0] * 3, x, offset=2 * bsp.pid)  # here
    bsp.sync()
""",
        "Put fewer values, from an earlier element on, or make the array larger on the process "
        "that receives them.",
        ["1 of 3 elements fall outside 'x' on process 0 (offset 2 + 3 > size 4)", "[process 1,"],
    ),
    Mistake(
        "Values of another size than their place",
        """
def main(bsp):
    x = bsp.zeros(4)
    bsp.put(0, [1.0] * 3, x)  # here
    bsp.sync()
""",
        "Without an offset the whole array is assigned, as by `x[:] = values`. Name the part that "
        "you mean: `bsp.put(0, values, x[:3])`.",
        ["shape (3,)", "shape (4,)", "name a part of the array", "[process 0,"],
    ),
    Mistake(
        "A forgotten sync",
        """
def main(bsp):
    x = bsp.zeros(2)
    bsp.put(0, [1.0], x, offset=bsp.pid)  # here
    return x.sum()
""",
        "What is put arrives at the end of the superstep: call `bsp.sync()` before you read it.",
        ["1 put to process 0", "sync before the end", "[process 0,"],
    ),
    Mistake(
        "A sync in an if",
        """
def main(bsp):
    x = bsp.zeros(1)
    if bsp.pid == 0:
        bsp.put(1, [1.0], x)
        bsp.sync()  # here
    return x.sum()
""",
        "All processes make the same syncs. Leave in the `if` what only some do, and call the sync "
        "behind it.",
        ["[0] at a sync, [1] returned from main", "process 0 waits", "no sync stands in an if"],
    ),
    Mistake(
        "Unequal collectives",
        """
def main(bsp):
    if bsp.pid == 0:
        return bsp.broadcast(5)  # here
    return bsp.allreduce(5)
""",
        "All processes call the same collectives in the same order; `root=` says whose value it "
        "is. The others call `bsp.broadcast(None)`.",
        ["broadcast", "process 1 is in allreduce", "call the same collectives"],
    ),
    Mistake(
        "An array that is not registered",
        """
import numpy as np

def main(bsp):
    x = np.zeros(4)
    bsp.put(0, [1.0], x, offset=0)  # here
    bsp.sync()
""",
        "Make it by `bsp.zeros(4)`, or register it on all processes: `bsp.push_reg(x)`, then "
        "`bsp.sync()`.",
        ["x is not in a registered array; push_reg it first", "[process 0,"],
    ),
    Mistake(
        "A copy that is taken for a view",
        """
def main(bsp):
    x = bsp.zeros(4)
    bsp.put(0, [1.0, 2.0], x[[0, 3]])  # here
    bsp.sync()
""",
        "An index with a list, and `x + 1`, make a new array, which no other process knows. Single "
        "elements are named by `bsp.put_at(0, [0, 3], [1.0, 2.0], x)`; new values for a whole "
        "array are written by `x[:] = x + 1`.",
        ["the array of shape (2,) is not in a registered array", "put_at", "[process 0,"],
    ),
    Mistake(
        "An element that is taken for a place",
        """
def main(bsp):
    x = bsp.zeros(4)
    bsp.put(0, 1.0, x[3])  # here
    bsp.sync()
""",
        "`x[3]` is a number. `bsp.on(0, x)[3] = 1.0` and `bsp.put(0, 1.0, x[3:4])` name the place.",
        ["0.0) is a number and names no place; write x[3:4] or offset=3", "[process 0,"],
    ),
    Mistake(
        "Values that would lose their fractions",
        """
def main(bsp):
    x = bsp.zeros(4, int)
    bsp.put(0, [1.5], x, offset=0)  # here
    bsp.sync()
""",
        "Convert them first, as by `np.rint(values).astype(int)`, or make the array of floats.",
        ["dtype float64 cannot be cast to dtype int64", "convert them first", "[process 0,"],
    ),
    Mistake(
        "Numbers that do not fit",
        """
import numpy as np

def main(bsp):
    x = bsp.zeros(2, np.int8)
    bsp.put(0, np.array([7, 300]), x)  # here
    bsp.sync()
    return x.tolist()
""",
        "Without `check=True` (or `bsp run --check`) an array of integers is cast as by numpy's "
        "`astype`, and 44 arrives where 300 was sent. Python's own numbers raise always.",
        ["put: 1 of 2 values of dtype int64", "300 would become 44", "[process 0,"],
        "bsplib.run(main, nprocs=1, check=True)",
    ),
    Mistake(
        "A masked array",
        """
import numpy as np

def main(bsp):
    x = bsp.zeros(2)
    bsp.put(0, np.ma.array([1.0, 2.0], mask=[0, 1]), x)  # here
    bsp.sync()
""",
        "The array on the other process has no mask. Fill what is masked, or send the array as a "
        "message, which keeps its mask.",
        ["put: a masked array would lose its mask", "numpy.ma.filled", "[process 0,"],
        "bsplib.run(main, nprocs=1)",
    ),
    Mistake(
        "Strings that would be cut",
        """
def main(bsp):
    names = bsp.zeros(2, "U3")
    bsp.put(0, ["north"], names, offset=bsp.pid)  # here
    bsp.sync()
""",
        "An array of `U3` has room for three characters in each element: make it of `U5`, or send "
        "strings as messages.",
        ["dtype <U5 would be cut to dtype <U3; shorten them first", "[process 0,"],
    ),
    Mistake(
        "Reading what a get has not brought yet",
        """
def main(bsp):
    x = bsp.full(4, 7.0)
    got = bsp.get((bsp.pid + 1) % 2, x)
    total = got.sum()  # here
    bsp.sync()
    return total
""",
        "The values are there after the sync. Without `check=True` (or `bsp run --check`) nothing "
        "is raised, but the sum is NaN: until the sync the first and the last elements of a new "
        "array are NaN, or the least integer.",
        ["destination of get", "before the sync", "read it after the sync", "[process 0,"],
        "bsplib.run(main, nprocs=2, check=True)",
    ),
    Mistake(
        "An array that is replaced by another one",
        """
def main(bsp):
    x = bsp.zeros(2)
    bsp.sync()
    bsp.put(0, [1.0, 2.0], x)
    x = x + 1
    bsp.sync()  # here
    return x.tolist()
""",
        "After `x = x + 1` the name `x` is that of a new array, which is not registered: what is "
        "put arrives in the old one. `x += 1` and `x[...] = x + 1` change the registered array. "
        "Only `check=True` (or `bsp run --check`) warns of it.",
        ["the array 'x' of process 0", "is reached by put", "write x[...] = x + 1"],
        "bsplib.run(main, nprocs=1, check=True)",
    ),
    Mistake(
        "Arrays that are registered in another order",
        """
def main(bsp):
    if bsp.pid == 0:
        low = bsp.zeros(2)
        high = bsp.zeros(2)
    else:
        high = bsp.zeros(2)
        low = bsp.zeros(2)
    bsp.sync()  # here
""",
        "Registrations belong together by their order: what is put into `low` would arrive in "
        "`high`. Only `check=True` (or `bsp run --check`) compares the names of the variables.",
        ["where this process registered", "in the same order", "[process 0,"],
        "bsplib.run(main, nprocs=2, check=True)",
    ),
    Mistake(
        "Messages that nobody reads",
        """
def main(bsp):
    if bsp.pid == 0:
        bsp.send(1, "hello")
    bsp.sync()
    bsp.sync()  # here
""",
        "Messages can be read in the superstep after that in which they were sent, by `for source, "
        "tag, text in bsp.messages()`; then they are gone. Only `check=True` warns of it.",
        ["1 message to process 1 (1 from process 0) was not read", "read it before"],
        "bsplib.run(main, nprocs=2, check=True)",
    ),
    Mistake(
        "A group that is used after its end",
        """
def main(bsp):
    with bsp.partition([1, 2]) as half:
        total = half.allreduce(1)
    return half.allreduce(total)  # here
""",
        "A sub-group ends with its block; behind it use the group that was divided, here `bsp`. A "
        "later block `with half:` opens the sub-group again.",
        ["this group cannot be used: it has been left", "use the group of which", "[process 0,"],
    ),
    Mistake(
        "A lambda as a program",
        "",
        "Nothing is wrong with it: main may be a lambda or a function inside another one, however "
        "the processes are started.",
        ["[0, 10]"],
        "print(bsplib.run(lambda bsp: 10 * bsp.pid, nprocs=2))",
        legal=True,
    ),
    Mistake(
        "An argument that cannot be pickled",
        """
import threading

def main(bsp, lock):
    with lock:
        return bsp.pid
""",
        "Pass data, and make locks, open files and connections inside of main. (Forked processes "
        "inherit their arguments, and any will do; in a pool, under a fork server and on MPI they "
        "are pickled.)",
        ["argument 1 of main, of type lock, cannot be pickled", "make the rest inside main"],
        'bsplib.run(main, threading.Lock(), nprocs=2, start_method="spawn")  # here',
    ),
    Mistake(
        "A result that cannot be pickled",
        """
def main(bsp):
    return (n * n for n in range(bsp.pid))
""",
        "Return data: here the list instead of a generator.",
        ["what main returned on process 0", "'generator' object", "return data"],
    ),
    Mistake(
        "A message that cannot be pickled",
        """
def main(bsp):
    bsp.send(0, (n * n for n in range(bsp.pid)))  # here
    bsp.sync()
""",
        "Send data: here the list instead of a generator.",
        ["a payload of type generator cannot be pickled", "send data", "[process 0,"],
    ),
    Mistake(
        "An exception in one process",
        """
def main(bsp):
    share = 1 / bsp.pid  # here
    return bsp.allreduce(share)
""",
        "All processes stop, and `run` raises the exception in its own type, with the traceback of "
        "the process. `bsp.abort(message)` stops all processes on purpose.",
        ["ZeroDivisionError: division by zero", "[process 0,"],
    ),
    Mistake(
        "An endless loop",
        """
def main(bsp):
    while bsp.pid == 1: pass  # here
    bsp.sync()
""",
        "`timeout=` (or `bsp run --timeout`) ends a run and says where each process is; so does "
        "Ctrl-C.",
        ["timeout=1 seconds", "computing in main", "waiting in sync"],
        "bsplib.run(main, nprocs=2, timeout=1)",
    ),
    Mistake(
        "A run that is interrupted, by Ctrl-C",
        """
import os, signal, time

def main(bsp):
    if bsp.pid == 1:
        time.sleep(1)
        os.kill(os.getppid(), signal.SIGINT); time.sleep(60)  # here
    bsp.sync()
""",
        "The signal is what Ctrl-C sends. Nothing of a run is left behind, and the message says "
        "where each process was.",
        ["KeyboardInterrupt", "computing in main", "waiting in sync"],
    ),
    Mistake(
        "No number of processes",
        """
def main(bsp):
    return bsp.pid
""",
        "The number is an integer. Without `nprocs=` there are as many processes as cores; "
        '`backend="sim"` takes thousands of virtual ones.',
        ["nprocs is '4'; it is an integer, 1 to 256 on shm"],
        'bsplib.run(main, nprocs="4")  # here',
    ),
    Mistake(
        "Too many processes, or none",
        """
def main(bsp):
    return bsp.pid
""",
        "The sentence says how many there may be; the same is said of -1 and of 100000.",
        ["nprocs is 0; it may be 1 to 256 on shm"],
        "bsplib.run(main, nprocs=0)  # here",
    ),
    Mistake(
        "The number of processes as an argument of main",
        """
def main(bsp):
    return bsp.pid
""",
        "What follows main is given to main.",
        ["main(bsp) cannot take (bsp, 4)", "write nprocs=4"],
        "bsplib.run(main, 4)  # here",
    ),
    Mistake(
        "Forgotten arguments of main",
        """
def main(bsp, size):
    return bsp.zeros(size).sum()
""",
        "The arguments follow main: `bsplib.run(main, 1000, nprocs=2)`.",
        ["main(bsp, size) cannot take (bsp)", "'size'", "as in run(main, 10)"],
        "bsplib.run(main, nprocs=2)  # here",
    ),
    Mistake(
        "Calling main instead of naming it",
        """
def main(bsp=None):
    return "done"
""",
        "Give `run` the function itself: `bsplib.run(main, nprocs=2)`.",
        ["main is 'done', which is no function; write run(main, ...)"],
        "bsplib.run(main(), nprocs=2)  # here",
    ),
    Mistake(
        "A generator as main",
        """
def main(bsp):
    yield bsp.pid
""",
        "A function with `yield` does nothing when it is called. Return a list.",
        ["main is a generator function", "returns its result"],
        "bsplib.run(main, nprocs=2)  # here",
    ),
    Mistake(
        "A run inside a run",
        """
def inner(bsp):
    return bsp.pid

def main(bsp):
    return bsplib.run(inner, nprocs=2)
""",
        "This is legal: each process starts processes of its own, here four in all. Most often a "
        "sub-group is meant, which costs nothing: `with bsp.partition(ends) as sub:`.",
        ["[[0, 1], [0, 1]]"],
        "print(bsplib.run(main, nprocs=2))",
        legal=True,
    ),
    Mistake(
        "A global variable that is changed",
        """
total = 0

def main(bsp):
    global total
    total += 1
    return total
""",
        "Each process has variables of its own, and a change is seen by nobody else: return "
        "values, put them or send them. On sim all processes share the variables of the program; a "
        "program that is to run anywhere changes none.",
        ["[1, 1] 0", "[1, 2] 2"],
        "print(bsplib.run(main, nprocs=2), total)\n    print(bsplib.run(main, nprocs=2, "
        'backend="sim"), total)',
        legal=True,
    ),
    Mistake(
        "The same seed on all processes",
        """
import numpy as np

def main(bsp):
    same = np.random.default_rng(1).integers(100)
    own = bsp.rng(seed=1).integers(100)
    return int(same), int(own)
""",
        "A generator that each process makes from the same seed gives the same numbers everywhere. "
        "`bsp.rng(seed)` gives each process a stream of its own, and the same ones in every run.",
        ["[(47, 1), (47, 94)]"],
        "print(bsplib.run(main, nprocs=2))",
        legal=True,
    ),
    Mistake(
        "A crash in compiled code",
        """
import ctypes

def main(bsp):
    if bsp.pid == 1:
        ctypes.string_at(0)
    bsp.sync()
""",
        "All others stop at once. Python can tell the line: start the program by "
        "`PYTHONFAULTHANDLER=1 python mistake.py`.",
        ["process 1 was killed by SIGSEGV in superstep 0", "PYTHONFAULTHANDLER=1"],
    ),
    Mistake(
        "A put as in BSPlib for C",
        """
import numpy as np

def main(bsp):
    x = bsp.zeros(16)
    bsp.put(0, np.ones(8), x, 64, 64)  # here
    bsp.sync()
""",
        "A place is named by a view, or by `offset=` in elements, and the values have their size "
        "with them: `bsp.put(0, np.ones(8), x[8:])`. [From BSPlib](from/bsplib.md) has all calls.",
        ["TypeError: ", "[write put(pid, src, dst, *, offset=None, at=None)]", "[process 0,"],
    ),
    Mistake(
        "Calling a number",
        """
def main(bsp):
    return bsp.nprocs()  # here
""",
        "`bsp.pid` and `bsp.nprocs` are attributes.",
        ["[nprocs is a number: write nprocs without brackets]", "[process 0,"],
    ),
    Mistake(
        "A name of another library",
        """
def main(bsp):
    return bsp.Allreduce(1)  # here
""",
        "[From MPI](from/mpi.md) lists the calls of mpi4py beside those of bsplib.",
        ["a group has no attribute 'Allreduce'; it is called allreduce here", "[process 0,"],
    ),
)


class Said(NamedTuple):
    """What came of a program."""

    message: str
    """Without the traceback: what a reader looks at."""
    output: str
    """All that was written."""


def run(mistake: Mistake, folder: Path) -> Said:
    """Run the program of a mistake in an interpreter of its own."""
    (folder / FILE).write_text(mistake.program, encoding="utf-8")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else the program ignores it, too
    done = subprocess.run(
        [sys.executable, FILE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout if mistake.legal else _message(done.stderr)
    return Said(said.replace(f"{folder}/", "").strip(), done.stdout + done.stderr)


def _message(text: str) -> str:
    """Return the last exception of some output, or its warnings, without the lines of code."""
    last = text.rpartition("Traceback (most recent call last):\n")[2]
    lines = [line for line in last.splitlines() if line and not line.startswith("  ")]
    others = re.compile(r"(; |^\[)\d+ more process(es)? failed(?=\]$)")  # depends on who is quicker
    told = (others.sub("", line.removeprefix("bsplib.errors.")) for line in lines)
    return "\n".join(line for line in told if line != "]")


def section(number: int, mistake: Mistake, message: str) -> str:
    """Return the part of the page about a mistake."""
    says = "What it prints:" if mistake.legal else "What bsplib says:"
    return (
        f"## {number}. {mistake.title}\n\n```python\n{mistake.program}```\n\n{says}\n\n"
        f"```text\n{message}\n```\n\n{mistake.out}\n"
    )


def page() -> str:
    """Return the page."""
    parts, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number, mistake in enumerate(MISTAKES, 1):
            message = run(mistake, Path(folder)).message
            parts.append(section(number, mistake, message))
            rows.append(f"| {number} | {mistake.title} | {_kind(mistake, message)} |")
    table = "\n".join(["| | Mistake | What happens |", "|---|---|---|", *rows])
    return f"{_HEAD}\n{table}\n\n" + "\n".join(parts)


def _kind(mistake: Mistake, message: str) -> str:
    if mistake.legal:
        return "legal"
    found = re.search(r"(\w+(?:Error|Warning|Interrupt))\b", message)
    kind = f"`{found[1]}`" if found else "error"
    return f"{kind}, with `check=True`" if "check=True" in mistake.runs else kind


_HEAD = """# Mistakes of beginners

Each of these programs makes one mistake, at the line that ends in `# here` where there is one.
Below it is what bsplib says, without the traceback, and the way out. This page is made by
`python docs/mistakes.py`, which runs the programs, and a test holds that they still say this.

All these messages name the process, the superstep and the line at their end, unless the mistake is
found before any process is started. `check=True`, or `bsp run --check`, finds some more.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
