"""The checks of records go block by block, and say the same as a check of each record."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from bsplib.errors import TraceError
from bsplib.recording import plausibility, tables
from bsplib.recording.records import (
    FROM_SYSTEM,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    UNMEASURED,
    Frame,
    GroupInfo,
    Run,
    root_group,
)
from bsplib.sync_kinds import Kind

NPROCS, SUPERSTEPS = 6, 20
GROUPS = (
    root_group(NPROCS),
    GroupInfo(0, 0, 0, 0, (0, 5, 1)),
    GroupInfo(0, 0, 0, 1, range(4, 1, -1)),
    GroupInfo(1, 0, 0, 0, (5, 0)),
)


def sound_run(rng):
    """All processes make supersteps in their groups in turns; each puts into another there."""
    rows, traffic = [], []
    for pid in range(NPROCS):
        mine = [number for number, group in enumerate(GROUPS) if pid in group.members]
        for number in range(SUPERSTEPS):
            group = mine[number % len(mine)]
            others = [other for other in GROUPS[group].members if other != pid]
            traffic.append((len(rows), rng.choice(others), rng.integers(2), 8, 1))
            times = 100 * number + np.cumsum([0, *rng.integers(0, 20, 3)])
            spent = times[1] - times[0]
            calls = rng.integers(0, spent + 1)
            place = pid, group, number, Kind.SYNC, rng.integers(2)
            rows.append((*place, *times, calls, spent - calls, 0, 0, *UNMEASURED))
    main = Frame("a.py", "main", 1, 2)
    records = np.array(rows, RECORD)
    return Run(NPROCS, GROUPS, ((main,), (main, main)), records, np.array(traffic, TRAFFIC))


def by_superstep(run):
    """The same records, superstep by superstep."""
    order = np.argsort(run.records["superstep"], kind="stable")
    traffic = run.traffic.copy()
    traffic["record"] = np.argsort(order)[traffic["record"]]
    return Run(run.nprocs, run.groups, run.stacks, run.records[order], traffic)


def is_sound(run):
    """Look at each record and each traffic row by itself."""
    ends, supersteps = defaultdict(int), defaultdict(lambda: -1)
    for record in run.records:
        pid, group, kind = (int(record[name]) for name in ("pid", "group", "kind"))
        numbers = [int(record[name]) for name in RECORD.names if name not in FROM_SYSTEM]
        limits = (pid, run.nprocs), (group, len(run.groups)), (record["stack"], len(run.stacks))
        if min(numbers) < 0 or max(numbers) > 2**53 or kind >= len(Kind):
            return False
        if any(number >= end for number, end in limits) or pid not in run.groups[group].members:
            return False
        start, arrive, released, end = (record[name] for name in RECORD.names[5:9])
        if not start <= arrive <= released <= end or (kind == Kind.END and arrive != end):
            return False
        if record["comm_calls"] + record["sub"] > arrive - start or not sound_parts(record):
            return False
        if end < ends[pid] or record["superstep"] <= supersteps[pid, group]:
            return False
        ends[pid], supersteps[pid, group] = end, record["superstep"]
    return all(sound_row(run, *row.item()) for row in run.traffic)


def sound_parts(record):
    measured = [int(record[name]) for name in FROM_SYSTEM]
    if (
        min(measured) < NOT_MEASURED
        or max(measured) > 2**53
        or record["recording"] > record["start"]
    ):
        return False
    start, arrive, _, end, calls, sub = (int(record[name]) for name in RECORD.names[5:11])
    if record["pickling"] > end - start:
        return False
    return all(
        max(record[f"{part}_cpu"], 0) + max(record[f"{part}_ready"], 0) <= elapsed
        for part, elapsed in (
            ("comp", arrive - start - calls - sub),
            ("comm", calls + end - arrive),
        )
    )


def sound_row(run, record, partner, direction, size_bytes, messages):
    if not 0 <= record < len(run.records) or direction > 1 or min(size_bytes, messages) < 0:
        return False
    caller = run.records[record]
    return partner != caller["pid"] and partner in run.groups[caller["group"]].members


def passes(run):
    try:
        plausibility.check_traffic(run, plausibility.check_records(run))
    except TraceError:
        return False
    return True


@pytest.mark.lengthy
@pytest.mark.parametrize("block", [7, 2**14])
@pytest.mark.parametrize("arranged", [lambda run: run, by_superstep])
def test_what_is_refused_is_what_is_wrong_in_one_record(monkeypatch, block, arranged):
    monkeypatch.setattr(tables, "ROWS", block)
    rng = np.random.default_rng(block)
    run = arranged(sound_run(rng))
    assert is_sound(run)
    assert passes(run)
    refused = 0
    for _ in range(40):
        changed = run.records if rng.random() < 0.7 else run.traffic
        name, row = rng.choice(changed.dtype.names), rng.integers(len(changed))
        was = changed[name][row]
        change = int(rng.choice([-(2**31), -100, -2, -1, 1, 2, 3, 100, 2**31 - 200]))
        least = 0 if changed.dtype[name].kind == "u" else -(2**31)
        changed[name][row] = np.clip(int(was) + change, least, np.iinfo(changed.dtype[name]).max)
        assert passes(run) == is_sound(run), (name, row, change)
        refused += not passes(run)
        changed[name][row] = was
    assert 10 < refused < 40


@pytest.mark.lengthy
def test_of_many_groups_of_many_processes_only_those_with_records_take_memory():
    groups = (root_group(2**16), *[GroupInfo(0, 0, 0, 0, range(2**16))] * 2**16)
    records = np.zeros(3, RECORD)
    records["pid"], records["group"] = [5, 5, 9], [2**16, 7, 2**16]
    for name in FROM_SYSTEM:
        records[name] = NOT_MEASURED
    run = Run(2**16, groups, ((Frame("a.py", "main", 1, 2),),), records, np.empty(0, TRAFFIC))
    plausibility.check_records(run)
    records["pid"][1:] = 5
    with pytest.raises(TraceError, match="record 2 has a superstep out of order"):
        plausibility.check_records(run)
