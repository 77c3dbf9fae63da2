"""Files of ranks made by hand, for tests of what joins them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bsplib.record import events as ev

US = 1_000
MS = 1_000_000


class RankWriter:
    """Writes the file of a rank, as the shim does it in C; the file is created or replaced."""

    def __init__(self, path):
        self._file = path.open("wb", buffering=0)
        self._file.write(ev.MAGIC.ljust(ev.HEAD.size, b"\0"))

    def rows(self, kind, rows):
        """Write a chunk of rows of a kind."""
        self._chunk(kind, rows.tobytes())

    def line(self, kind, value):
        """Write one line: header, comm, stack, clock or end."""
        self._chunk(ev.LINES, json.dumps([kind, value]).encode() + b"\n")

    def close(self, state=ev.ENDED):
        """Mark the file as complete, or as one that could not be continued, and close it."""
        self._file.seek(len(ev.MAGIC))
        self._file.write(bytes([state]))
        self._file.close()

    def _chunk(self, kind, data):
        if data:
            head = ev.CHUNK_HEAD.pack(ev.CHUNK_MARK, kind, len(data), len(data))
            self._file.write(head + data)


class RankMaker:
    """Collects the calls of one rank, then writes its file.

    Times are microseconds since the begin of the program on the clock of the rank.
    """

    def __init__(self, rank, size, *, host="here", begin=1_000_000, clock=(), **header):
        self.rank = rank
        self.size = size
        self.begin = begin
        self.header = {
            "run": "a run",
            "rank": rank,
            "size": size,
            "host": host,
            "mpi": "MPI",
            "library": "none",
            "program": "jac.py",
            "arguments": [],
            "python": "3",
            "mpi4py": "4",
            "begin": begin,
            "cores": 8,
            **header,
        }
        self.clock = list(clock)
        self.rows = []
        self.parts = []
        self.dones = []
        self.stacks = []
        self.comms = [
            comm_of(ev.WORLD, -1, 0, tuple(range(size))),
            comm_of(ev.SELF, -1, 1, (rank,)),
        ]
        self.now = 0
        self.requests = 0
        self.cpu = None
        self.call("Init", 0, 0, comm=ev.UNKNOWN)

    def call(
        self,
        name,
        enter,
        leave,
        *,
        line=0,
        comm=ev.WORLD,
        partner=ev.NOBODY,
        tag=0,
        request=0,
        out=0,
        into=0,
        done=(),
        parts=(),
        cpu=(ev.NOT_READ,) * 4,
        pickles=(0, 0),
        function="main",
    ):
        """Make a call; ``done`` holds (request, source, tag, bytes), ``parts`` (partner, out, in).

        Returns the number of the request.
        """
        event = len(self.rows)
        row = np.zeros(1, ev.EVENT)
        row["call"], row["comm"] = ev.NUMBER[name], comm
        row["stack"] = self.stack(line, function) if line else -1
        row["partner"], row["tag"], row["object"] = partner, tag, request
        row["bytes_out"], row["bytes_in"] = out, into
        row["enter"], row["leave"] = self.at(enter), self.at(leave)
        row["cpu"], row["cpu_leave"], row["ready"], row["ready_leave"] = cpu
        row["pickling"], row["pickled_bytes"] = pickles
        self.rows.append(row)
        self.dones += [(event, *each) for each in done]
        self.parts += [(event, *each) for each in parts]
        self.now = leave
        return request

    def at(self, us):
        return self.begin + round(us * US)

    def start(self, name, enter, leave, **more):
        """Make a call that starts a request; returns its number."""
        self.requests += 1
        return self.call(name, enter, leave, request=self.requests, **more)

    def stack(self, line, function):
        frames = (("jac.py", "<module>", 1, 99, False), ("jac.py", function, 10, line, False))
        if frames not in self.stacks:
            self.stacks.append(frames)
        return self.stacks.index(frames)

    def communicator(self, number, members, *, parent=0, ordinal=0, remote=()):
        self.comms.append(comm_of(number, parent, ordinal, members, remote))

    def write(self, folder: Path, *, end=None, exited=None, cut=False, error=""):
        """Write the file; without ``cut`` it says when Finalize began and when the rank exited."""
        folder.mkdir(exist_ok=True)
        writer = RankWriter(folder / ev.file_name(self.rank))
        writer.line("header", self.header)
        for comm in self.comms:
            writer.line("comm", comm)
        for number, frames in enumerate(self.stacks):
            writer.line("stack", [number, frames])
        for sample in self.clock:
            writer.line("clock", sample)
        if self.rows:
            writer.rows(ev.EVENTS, np.concatenate(self.rows))
        writer.rows(ev.PARTS, np.array(self.parts, ev.PART))
        writer.rows(ev.DONES, np.array(self.dones, ev.DONE))
        if not cut:
            end = self.now if end is None else end
            writer.line(
                "end",
                {
                    "exit": self.at(end if exited is None else exited),
                    "finalize": self.at(end),
                    "error": error,
                },
            )
        writer.close()


def comm_of(number, parent, ordinal, members, remote=()):
    return {
        "number": number,
        "parent": parent,
        "ordinal": ordinal,
        "members": list(members),
        "remote": list(remote),
    }


def written(folder: Path, makers, **options) -> Path:
    """Write the files of some ranks, each of which ends after its last call."""
    exited = max(maker.now for maker in makers)
    for maker in makers:
        maker.write(folder, exited=exited, **options)
    return folder
