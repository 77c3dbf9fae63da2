"""Runs made by hand, for tests of what shows them: figure 3 of Jarvis et al., a tree, bad names."""

from __future__ import annotations

import numpy as np

from bsplib.recording.records import Frame
from bsplib.sync_kinds import Kind
from tests.scripted import Script

HOSTILE_NAMES = (
    "<script>alert('name')</script>",
    "<img src=x onerror=alert(1)>",
    "\"quoted\" & 'quoted' &lt;b&gt;",
    "back\\Nslash\\l\\G",
    "<b>html?</b>",
    "-->]]></svg><script>alert(2)</script>",
    "Größe.naïve.<lambda>.数据并行",
    "bell\x07null\x00escape\x1b[31m",
    "lone\udc80surrogate\u2028line",
    "right-to-left \u202e override",
    "a_very_long_name." * 30,
)


def ns(seconds, nprocs):
    """Return seconds, for all processes or one by one, in nanoseconds."""
    return [round(one * 1e9) for one in np.broadcast_to(seconds, nprocs).tolist()]


def step(made, stack, work_s=0.0, calls_s=0.0, exchange_s=0.0, sends=(), kind=Kind.SYNC):
    """Let all processes of a run end a superstep, with times in seconds."""
    nprocs = len(made.clock)
    w, calls, transfer = ns(work_s, nprocs), ns(calls_s, nprocs), round(exchange_s * 1e9)
    made.step(stack, w, calls=calls, transfer=transfer, puts=sends, kind=kind)


def run_of(made, **meta):
    """Return a run of real processes."""
    complete = meta.pop("complete", True)
    return made.run(complete=complete, meta={"program": "bcast.py", "backend": "shm", **meta})


def frame(function, first_line, line, file="/home/user/bcast.py"):
    return Frame(file, function, first_line, line)


def broadcast_run(nprocs=16, onestage=250, twostage=500, size=40_000, **meta):
    """The program of figure 3 of Jarvis et al.: foo and bar share the one-stage broadcast."""
    made = Script(nprocs)
    rng = np.random.default_rng(1)
    others = range(1, nprocs)
    piece = size // nprocs
    one = frame("bcast_onestage", 12, 18)
    scatter, exchange = frame("bcast_twostage", 24, 34), frame("bcast_twostage", 24, 41)
    everyone = [(i, j, piece) for i in range(nprocs) for j in range(nprocs) if i != j]

    def uneven(root_s, rest_s):
        work_s = rest_s * rng.uniform(0.9, 1.1, nprocs)
        work_s[0] = root_s
        return work_s

    def bcast_onestage(above):
        work_s = uneven(39e-3, 4e-3)
        sends = [(0, pid, size) for pid in others]
        step(made, (*above, one), work_s, uneven(2e-3, 1e-4), 37e-3, sends)

    def bcast_twostage(above):
        sends = [(0, pid, piece) for pid in others]
        step(made, (*above, scatter), uneven(2.7e-3, 1.1e-3), 2e-4, 2.4e-3, sends)
        step(made, (*above, exchange), uneven(6.7e-3, 6.6e-3), 4e-4, 6.4e-3, everyone)

    main_foo, main_bar = frame("main", 60, 63), frame("main", 60, 64)
    for _ in range(onestage):
        bcast_onestage((main_foo, frame("foo", 46, 48)))
    for _ in range(onestage):
        bcast_onestage((main_bar, frame("bar", 51, 54)))
    for _ in range(twostage):
        bcast_twostage((main_bar, frame("bar", 51, 56)))
    step(made, (frame("main", 60, 65),), 1e-4, kind=Kind.END)
    return run_of(made, **meta)


def hostile_run():
    """Two processes, and functions whose names try everything."""
    made = Script(2)
    for number, name in enumerate(HOSTILE_NAMES):
        inner = frame(name, 10 * number + 5, 10 * number + 7, file=f"/tmp/{name}.py")
        step(made, (frame("main", 1, 2), inner), (1e-3, number * 1e-3), 0, 1e-4, [(0, 1, 8)])
    return run_of(made, program="</script><script>alert('program')</script>")


def tree_run(nodes, nprocs=4, seed=7):
    """A run of about ``nodes`` functions and cost centres, a few of them shared."""
    rng = np.random.default_rng(seed)
    made = Script(nprocs)
    functions = nodes // 2
    parent = [0, *(int(rng.integers(max(0, (i - 1) // 3), i)) for i in range(1, functions))]
    for number in range(functions):
        chain = [number]
        while chain[-1]:
            chain.append(parent[chain[-1]])
        stack = tuple(
            frame(f"Solver.stage_{i}" if i else "main", 10 * i, 10 * i + 3, file=f"part{i % 7}.py")
            for i in reversed(chain)
        )
        scale = float(rng.lognormal(-6, 1.5))
        sends = [(0, 1, int(rng.integers(1, 10**6)))] if nprocs > 1 else []
        step(made, stack, scale * rng.uniform(0.2, 1, nprocs), 0, scale / 3, sends)
    return run_of(made, program="solver.py")
