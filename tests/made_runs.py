"""Runs made by hand, for tests of what shows them: figure 3 of Jarvis et al., a tree, bad names."""

from __future__ import annotations

import numpy as np

from bsplib.directions import Direction
from bsplib.recording.records import (
    FROM_SYSTEM,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    Frame,
    Run,
    root_group,
)
from bsplib.sync_kinds import Kind

NS = 1_000_000_000
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


class RunMaker:
    """Collects supersteps of a root group, then makes the Run."""

    def __init__(self, nprocs):
        self.nprocs = nprocs
        self.stacks = {}
        self.records = []
        self.traffic = []
        self.clock = np.zeros(nprocs, dtype=np.int64)
        self.superstep = 0

    def step(self, stack, work_s, calls_s=0.0, exchange_s=0.0, sends=(), kind=Kind.SYNC):
        """End a superstep; ``sends`` holds (source, destination, bytes)."""
        rows = np.zeros(self.nprocs, dtype=RECORD)
        rows["pid"] = np.arange(self.nprocs)
        rows["superstep"] = self.superstep
        for name in FROM_SYSTEM:
            rows[name] = NOT_MEASURED
        rows["kind"] = kind
        rows["stack"] = self.stacks.setdefault(stack, len(self.stacks))
        rows["comm_calls"] = np.round(np.asarray(calls_s) * NS)
        rows["start"] = self.clock
        rows["arrive"] = self.clock + np.round(np.asarray(work_s) * NS) + rows["comm_calls"]
        last = kind == Kind.END
        rows["released"] = rows["arrive"] if last else rows["arrive"].max()
        rows["end"] = rows["released"] + (0 if last else round(exchange_s * NS))
        first = len(self.records) * self.nprocs
        self.traffic += [(first + pid, to, Direction.OUT, size, 1) for pid, to, size in sends]
        self.records.append(rows)
        self.clock = rows["end"].copy()
        self.superstep += 1

    def run(self, **meta):
        complete = meta.pop("complete", True)
        return Run(
            nprocs=self.nprocs,
            groups=(root_group(self.nprocs),),
            stacks=tuple(self.stacks),
            records=np.concatenate(self.records),
            traffic=np.array(self.traffic, dtype=TRAFFIC),
            complete=complete,
            meta={"program": "bcast.py", "backend": "shm", **meta},
        )


def frame(function, first_line, line, file="/home/user/bcast.py"):
    return Frame(file, function, first_line, line)


def broadcast_run(nprocs=16, onestage=250, twostage=500, size=40_000, **meta):
    """The program of figure 3 of Jarvis et al.: foo and bar share the one-stage broadcast."""
    maker = RunMaker(nprocs)
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
        maker.step((*above, one), work_s, uneven(2e-3, 1e-4), 37e-3, sends)

    def bcast_twostage(above):
        sends = [(0, pid, piece) for pid in others]
        maker.step((*above, scatter), uneven(2.7e-3, 1.1e-3), 2e-4, 2.4e-3, sends)
        maker.step((*above, exchange), uneven(6.7e-3, 6.6e-3), 4e-4, 6.4e-3, everyone)

    main_foo, main_bar = frame("main", 60, 63), frame("main", 60, 64)
    for _ in range(onestage):
        bcast_onestage((main_foo, frame("foo", 46, 48)))
    for _ in range(onestage):
        bcast_onestage((main_bar, frame("bar", 51, 54)))
    for _ in range(twostage):
        bcast_twostage((main_bar, frame("bar", 51, 56)))
    maker.step((frame("main", 60, 65),), 1e-4, kind=Kind.END)
    return maker.run(**meta)


def hostile_run():
    """Two processes, and functions whose names try everything."""
    maker = RunMaker(2)
    for number, name in enumerate(HOSTILE_NAMES):
        inner = frame(name, 10 * number + 5, 10 * number + 7, file=f"/tmp/{name}.py")
        maker.step((frame("main", 1, 2), inner), (1e-3, number * 1e-3), 0, 1e-4, [(0, 1, 8)])
    return maker.run(program="</script><script>alert('program')</script>")


def tree_run(nodes, nprocs=4, seed=7):
    """A run of about ``nodes`` functions and cost centres, a few of them shared."""
    rng = np.random.default_rng(seed)
    maker = RunMaker(nprocs)
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
        maker.step(stack, scale * rng.uniform(0.2, 1, nprocs), 0, scale / 3, sends)
    return maker.run(program="solver.py")
