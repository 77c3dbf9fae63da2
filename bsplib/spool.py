"""Where a process keeps its records while the program runs.

Rows are written straight into mapped files, so that they outlive a process that
is killed; the parent reads them when the run has ended, however it has ended, and
keeps the supersteps that all their processes have recorded.
"""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.records import RECORD, TRAFFIC, Frame, GroupInfo, Run, Stack

_HEADER = 8  # bytes: the number of rows that are whole
_ROWS_AT_FIRST = 1024
_COUNT = Struct("<Q")
_pack_count = _COUNT.pack_into


class Table:
    """Rows of one dtype, appended one by one to a mapped file."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        # Little-endian and packed, as the dtypes of bsplib.records are.
        codes = "".join(dtype[name].char for name in dtype.names or ())
        row = Struct("<" + codes.replace("l", "q"))
        assert row.size == dtype.itemsize
        self._pack, self._size = row.pack_into, row.size
        self._file = path.open("w+b")
        self._capacity = 0
        self.count = 0
        self._map = self._grow()

    def append(self, *values: int) -> None:
        """Add a row, which counts once it is whole."""
        count = self.count
        if count == self._capacity:
            self._map = self._grow()
        room = self._map
        self._pack(room, _HEADER + count * self._size, *values)
        self.count = count = count + 1
        _pack_count(room, 0, count)

    def close(self) -> None:
        """Close the file; its rows stay."""
        self._map.close()
        self._file.close()

    def _grow(self) -> mmap.mmap:
        self._capacity = max(2 * self._capacity, _ROWS_AT_FIRST)
        nbytes = _HEADER + self._capacity * self._size
        os.posix_fallocate(self._file.fileno(), 0, nbytes)  # a full disk is an error here
        return mmap.mmap(self._file.fileno(), nbytes)


def _read_table(path: Path, dtype: np.dtype[Any]) -> NDArray[np.void]:
    raw = path.read_bytes() if path.exists() else b""
    if len(raw) < _HEADER:
        return np.zeros(0, dtype)
    (count,) = _COUNT.unpack_from(raw)
    return np.frombuffer(raw, dtype, count, _HEADER)


class Spool:
    """Records, traffic and definitions of one process, in files of a folder."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.records = Table(folder / f"{pid}.records", RECORD)
        self.traffic = Table(folder / f"{pid}.traffic", TRAFFIC)
        self._definitions = (folder / f"{pid}.definitions").open("w", encoding="utf-8")

    def close(self) -> None:
        """Close the files; what was written stays."""
        self.records.close()
        self.traffic.close()
        self._definitions.close()

    def define_stack(self, stack: Stack) -> None:
        """Give a call stack the next number."""
        self._define("stack", stack)

    def define_group(self, group: GroupInfo) -> None:
        """Give a group the next number; its parent is a number of this process."""
        self._define("group", group.to_json())

    def _define(self, what: str, value: Any) -> None:
        json.dump([what, value], self._definitions)
        self._definitions.write("\n")
        self._definitions.flush()


def collect(folder: Path, nprocs: int, *, complete: bool, meta: dict[str, Any]) -> Run:
    """Put the spools of all processes together.

    Args:
        folder: where each process kept its spool.
        nprocs: number of processes.
        complete: the run ended without error.
        meta: what is known of the run.
    """
    groups: dict[GroupInfo, int] = {}
    stacks: dict[Stack, int] = {}
    records, traffic = [], []
    rows = 0
    for pid in range(nprocs):
        mine = _read_table(folder / f"{pid}.records", RECORD).copy()
        theirs = _read_table(folder / f"{pid}.traffic", TRAFFIC).copy()
        group_of, stack_of = _read_definitions(folder / f"{pid}.definitions", groups, stacks)
        mine["group"] = group_of[mine["group"]]
        mine["stack"] = stack_of[mine["stack"]]
        theirs = theirs[theirs["record"] < len(mine)]  # of a superstep never finished
        theirs["record"] += rows
        rows += len(mine)
        records.append(mine)
        traffic.append(theirs)
    return _keep_whole(
        Run(
            nprocs=nprocs,
            groups=tuple(groups),
            stacks=tuple(stacks),
            records=np.concatenate(records),
            traffic=np.concatenate(traffic),
            complete=complete,
            meta=meta,
        )
    )


def _read_definitions(
    path: Path, groups: dict[GroupInfo, int], stacks: dict[Stack, int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the run's numbers of a process's groups and stacks; add those that are new."""
    group_of: list[int] = []
    stack_of: list[int] = []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break  # the process died while it wrote
        what, value = json.loads(line)
        if what == "stack":
            stack = tuple(Frame(*frame) for frame in value)
            stack_of.append(stacks.setdefault(stack, len(stacks)))
        else:
            group = GroupInfo.of_json(value)
            if group.parent >= 0:
                group = group._replace(parent=group_of[group.parent])
            group_of.append(groups.setdefault(group, len(groups)))
    return np.array(group_of, np.int32), np.array(stack_of, np.int32)


def _keep_whole(run: Run) -> Run:
    """Drop the records of supersteps that not all processes of the group have ended."""
    if run.complete:
        return run
    sizes = np.array([group.size for group in run.groups], np.int64)
    keys = np.stack([run.records["group"].astype(np.int64), run.records["superstep"]], axis=1)
    _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    keep = counts[inverse.reshape(-1)] == sizes[run.records["group"]]
    position = np.cumsum(keep) - 1
    traffic = run.traffic[keep[run.traffic["record"]]].copy()
    traffic["record"] = position[traffic["record"]]
    return Run(
        nprocs=run.nprocs,
        groups=run.groups,
        stacks=run.stacks,
        records=run.records[keep],
        traffic=traffic,
        complete=False,
        meta=run.meta,
    )
