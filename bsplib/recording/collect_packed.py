"""Collects the records of a run that ended well, without unpacking them.

The chunks that the processes have written become those of the trace, with another header. So
the end of a run takes as long as copying a short file, however many supersteps there were. This
is for processes on the caller's host, whose clock is one: of others, and where anything was lost,
every record has to be looked at (:mod:`bsplib.recording.collect`).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.errors import TraceError
from bsplib.recording.collect import (
    meta_of,
    read_definitions,
    read_rows,
    read_table,
    reasons_of,
    sound_rows,
    unread_chunks,
)
from bsplib.recording.lifetimes import Caller, lifetime_of
from bsplib.recording.line_sampler import joined_samples, read_samples
from bsplib.recording.packing import HEADER, MAGIC, heads, packed
from bsplib.recording.records import RECORD, TRAFFIC, GroupInfo, Run, Stack, root_group
from bsplib.recording.trace import PackedRun, PackedTable

_Positions = tuple[tuple[int, ...], tuple[int, ...]]
"""Positions in the run of the groups and of the stacks of a process."""


def collect_whole(
    folder: Path, nprocs: int, meta: dict[str, Any], caller: Caller
) -> PackedRun | None:
    """Return the records of all processes as chunks.

    Returns:
        None where a process has no records, or stopped recording.

    Raises:
        TraceError: a file is damaged.
        OSError: a file cannot be read.
    """
    groups: dict[GroupInfo, int] = {root_group(nprocs): 0}
    stacks: dict[Stack, int] = {}
    numberings: dict[_Positions, int] = {}
    records, traffic, told = PackedTable(), PackedTable(), []
    samples: list[NDArray[np.void] | None] = []
    for pid in range(nprocs):
        try:
            group_of, stack_of, of_process = read_definitions(
                folder / f"{pid}.definitions", groups, stacks
            )
            numbering = _number(numberings, group_of, stack_of)
            sizes = len(group_of), len(stack_of)
            base = records.rows
            whole = _add(records, folder / f"{pid}.records", RECORD, numbering, 0, sizes)
            whole = whole and _add(traffic, folder / f"{pid}.traffic", TRAFFIC, 0, base, sizes)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise TraceError(f"the records of process {pid} are damaged: {error}") from error
        if not whole:
            return None
        told.append(of_process)
        samples.append(
            read_samples(folder, pid, of_process.sampled, partial(_records, folder, pid))
        )
    run = Run(
        nprocs=nprocs,
        groups=tuple(groups),
        stacks=tuple(stacks),
        records=np.empty(0, RECORD),
        traffic=np.empty(0, TRAFFIC),
        meta=meta | meta_of(told),
        lifetime=lifetime_of([each.noted for each in told], [None] * nprocs, caller),
        steal_ns=caller.steal_ns,
        samples=joined_samples(samples),
        measured=reasons_of([each.measured for each in told]),
    )
    positions = [(list(of_group), list(of_stack)) for of_group, of_stack in numberings]
    return PackedRun(run, records, traffic, positions)


def _records(folder: Path, pid: int) -> NDArray[np.void]:
    """Return the records of a process, unpacked."""
    return read_table(folder / f"{pid}.records", RECORD)[0]


def _number(
    numberings: dict[_Positions, int], group_of: NDArray[np.int32], stack_of: NDArray[np.int32]
) -> int:
    """Return the number of the numbering of a process; 0 where it is that of the run."""
    positions = tuple(group_of.tolist()), tuple(stack_of.tolist())
    if all(of == tuple(range(len(of))) for of in positions):
        return 0
    return numberings.setdefault(positions, len(numberings) + 1)


def _add(
    table: PackedTable,
    path: Path,
    dtype: np.dtype[Any],
    numbering: int,
    base: int,
    sizes: tuple[int, int],
) -> bool:
    """Add the rows of a process; return whether they are all there and recording never stopped."""
    if not path.exists():
        return False
    raw = path.read_bytes()
    rows, written, reason = read_rows(raw, dtype)
    if reason:
        return False
    content = unread_chunks(path)
    number = 0
    for head, payload in heads(content):
        header = HEADER.pack(MAGIC, head.rows, numbering, head.nbytes, base)
        table.add(head.rows, [header, payload])
        number += 1
    if number != written or (dtype == RECORD and len(sound_rows(rows, *sizes)) != len(rows)):
        return False
    if len(rows):
        table.add(len(rows), [packed(rows, numbering, base)])
    return True
