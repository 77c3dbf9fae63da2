"""Tables and windows give the same sums as a computation record by record."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from bsplib.directions import Direction
from bsplib.profiler import _numbering, window
from bsplib.profiler.costs import METRICS
from bsplib.profiler.survey import survey
from bsplib.recording import tables
from bsplib.sync_kinds import Kind

STACKS = ["main:2", "main a:12", "main b a:12", "main b:22", "main c:32"]


@pytest.fixture(params=["tables", "sorts", "short windows"], autouse=True)
def way(request, monkeypatch):
    """Tables and sorts, and windows shorter and longer than the records."""
    if request.param == "sorts":
        monkeypatch.setattr(_numbering, "_TABLE_PER_ROW", 0)
    if request.param == "short windows":
        monkeypatch.setattr(tables, "ROWS", 3)
        monkeypatch.setattr(window, "ROWS", 7)
    return request.param


@pytest.fixture(params=range(4))
def run(script, request):
    """Supersteps of five processes at various lines, some oblivious, some in sub-groups."""
    rng = np.random.default_rng(request.param)
    program = script(5)
    for _ in range(12):
        step(program, rng, 0)
        if rng.random() < 0.4:
            in_groups(program, rng, 0, deeper=2)
    program.step("main:9", rng.integers(0, 50, 5).tolist(), kind=Kind.END)
    return program.run()


def in_groups(program, rng, group, deeper):
    """Let processes end supersteps in two sub-groups, which may be empty and have sub-groups."""
    pids = rng.permutation(program.groups[group].members).tolist()
    first, last = sorted(rng.integers(0, len(pids) + 1, 2).tolist())
    chosen = [part for part in (pids[:first], pids[first:last]) if part]
    with program.split(*chosen, group=group) as numbers:
        for number in numbers:
            for _ in range(rng.integers(3)):
                step(program, rng, number)
                if deeper and rng.random() < 0.4:
                    in_groups(program, rng, number, deeper - 1)


def step(program, rng, group):
    pids = list(program.groups[group].members)
    size = len(pids)
    common = rng.choice(STACKS)
    stacks = [common if rng.random() < 0.6 else rng.choice(STACKS) for _ in pids]
    pairs = [tuple(rng.choice(pids, 2, replace=False).tolist()) for _ in range(3 * (size > 1))]
    transfers = [(*pair, int(rng.integers(100))) for pair in pairs]
    oblivious = rng.random() < 0.3
    program.step(
        stacks,
        rng.integers(0, 50, size).tolist(),
        calls=rng.integers(0, 5, size).tolist(),
        waits=rng.integers(0, 9, size).tolist() if oblivious else None,
        transfer=int(rng.integers(0, 20)),
        puts=transfers[:2],
        gets=transfers[2:],
        group=group,
        kind=Kind.OBLSYNC if oblivious else Kind.SYNC,
    )


def plain_h(run):
    """Bytes out of and into each record, by a search for the record of the partner."""
    h = np.zeros((2, len(run.records)))
    partners = []
    for caller, partner, direction, size_bytes, _ in run.traffic.tolist():
        mine = run.records[caller]
        same = (run.records["group"] == mine["group"]) & (run.records["pid"] == partner)
        found = np.flatnonzero(same & (run.records["superstep"] == mine["superstep"]))
        partners.append(int(found[0]) if len(found) else -1)
        out = direction == Direction.OUT
        h[0 if out else 1, caller] += size_bytes
        h[1 if out else 0, found] += size_bytes
    return partners, h


def plain_costs(run):
    """The costs of each record: comp, comm, idle in ns; h in bytes."""
    _, h = plain_h(run)
    costs = []
    for number, record in enumerate(run.records):
        comp = record["arrive"] - record["start"] - record["comm_calls"] - record["sub"]
        comm = record["comm_calls"] + record["end"] - record["released"]
        costs.append((comp, comm, record["released"] - record["arrive"], h[:, number].max()))
    return costs


def plain_sums(run, chosen):
    """Count, then maximum and minimum of each metric, over the chosen records."""
    costs = plain_costs(run)
    groups = defaultdict(lambda: defaultdict(dict))
    for number in chosen:
        record = run.records[number]
        groups[record["group"]][record["superstep"]][record["pid"]] = number

    def total(group):
        size = run.groups[group].size
        count, top, low = 0, np.zeros(4), np.zeros(4)
        for numbers in groups[group].values():
            values = [costs[number] for number in numbers.values()]
            values += [(0, 0, 0, 0)] * (len(numbers) < size)
            top, low = top + np.max(values, axis=0), low + np.min(values, axis=0)
            kinds = {int(run.records["kind"][number]) for number in numbers.values()}
            count += kinds != {Kind.END}
        beside = defaultdict(list)
        for position, info in enumerate(run.groups):
            if info.parent == group and covers(position):
                beside[info.ordinal].append(position)
        for positions in beside.values():
            counts, tops, lows = zip(*map(total, positions), strict=True)
            covered = sum(run.groups[position].size for position in positions)
            count, top = count + max(counts), top + np.max(tops, axis=0)
            low = low + (np.min(lows, axis=0) if covered == size else 0)
        return count, top, low

    def covers(group):
        inner = [number for number, info in enumerate(run.groups) if info.parent == group]
        return bool(groups[group]) or any(map(covers, inner))

    return total(0)


def plain_elapsed_ns(run, chosen):
    """Moments at which a chosen record was under way."""
    during = np.zeros(int(run.records["end"].max()), bool)
    for number in chosen:
        during[run.records["start"][number] : run.records["end"][number]] = True
    return np.count_nonzero(during)


def test_costs_of_any_origins_are_those_of_their_records(run):
    sums = survey(run).sums
    rng = np.random.default_rng(7)
    sets = [{origin} for origin in range(len(sums.origins))]
    sets += [set(range(len(sums.origins))), set()]
    sets += [set(rng.choice(len(sums.origins), 4, replace=False).tolist()) for _ in range(5)]
    costs = np.array(plain_costs(run))
    for origins in sets:
        chosen = np.flatnonzero(np.isin(sums.origin_of(run.records), list(origins))).tolist()
        cost = sums.cost(frozenset(origins))
        count, top, low = plain_sums(run, chosen)
        assert cost.count == count
        assert round(cost.elapsed_s * 1e9) == plain_elapsed_ns(run, chosen)
        for row, metric in enumerate(METRICS):
            unit = 1 if metric == "h" else 1e9
            pie = np.bincount(run.records["pid"][chosen], costs[chosen, row], 5)
            assert cost[metric].maximum * unit == pytest.approx(top[row])
            assert cost[metric].minimum * unit == pytest.approx(low[row])
            assert cost[metric].average * unit == pytest.approx(pie.mean())
            assert np.array(cost[metric].pie) * unit == pytest.approx(pie)
