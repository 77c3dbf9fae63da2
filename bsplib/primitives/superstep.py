"""The end of a superstep, beside what the engine does: registrations, checks, answers to gets."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bsplib.backends.base import Port
from bsplib.core.atomics import array_at
from bsplib.core.engine import Engine
from bsplib.core.entries import Entry, SendBuffer
from bsplib.core.kinds import ASK, NOTICE, REPLY, STAGED_ASK, STAGED_REPLY
from bsplib.core.known_arrays import KnownArray
from bsplib.errors import BspError, SyncMismatchError
from bsplib.sync_kinds import HAS_NOTICE, KIND_BITS, UNRESOLVED, Kind
from bsplib.transfers.delivery import (
    PendingGet,
    read_source,
    write_gaps,
    write_placed,
    write_strided,
)
from bsplib.transfers.descriptions import Named, count_of, unpacked
from bsplib.transfers.place import address
from bsplib.transfers.registry import Agreement, Registration, Registry, agreement_of

if TYPE_CHECKING:
    from bsplib.transfers.watch import Watch

_BYTE = np.dtype(np.uint8)
_KIND_WORDS = {
    Kind.SYNC: "at a sync",
    Kind.OBLSYNC: "at an oblsync",
    Kind.END: "returned from main",
}


class Supersteps:
    """What the engine of a group leaves to others, since it is needed rarely.

    It does not hold the engine, which gives itself where it is needed.

    Args:
        port: the process's connection to the others of the group.
        registry: the registered arrays.
        watch: what ``check=True`` observes; None without it.
    """

    def __init__(self, port: Port, registry: Registry, watch: Watch | None) -> None:
        self._port = port
        self._registry = registry
        self._watch = watch
        self._answers: dict[int, Iterator[Entry]] = {}
        """Entries that answer the gets of this superstep, by process, in the order of the gets."""
        self.changes = registry.changes
        """The registry's own list of what it will announce at the next global sync."""
        # Puts that the core does not write: of a place or values that it does not reach, into a
        # strided view of an array with gaps, and of a place that has a description.
        self.write_gaps = partial(write_gaps, registry)
        self.write_strided = partial(write_strided, registry)
        self.write_placed = partial(write_placed, registry)
        self.staging = port.staging
        """The staged values of this process."""
        self.tag_size: int | None = None
        """Bytes of every tag; None where the program has not called set_tagsize."""
        self.next_tag_size: int | None = None
        """Bytes of every tag from the next global sync on."""

    # -- before the meeting -------------------------------------------------------------------

    def announce(self, engine: Engine) -> int:
        """Announce registrations; return what the flags say beside the kind of sync."""
        flags = UNRESOLVED if engine.unresolved else 0
        if self.changes:
            announced = marshal.dumps(self._registry.announcement())
            send_buffer = engine.send_buffer
            send_buffer.describe(
                send_buffer.all, NOTICE, b"", 0, np.frombuffer(announced, np.uint8)
            )
            flags |= HAS_NOTICE
        return flags

    def check_kinds(self, engine: Engine, flags: int) -> NoReturn:
        """Raise the error that says how each process ends the superstep, since they differ."""
        all_flags = [engine.meeting.flags_of(pid) for pid in range(engine.nprocs)]
        all_flags[engine.pid] = flags
        at = {
            other: [pid for pid, flags in enumerate(all_flags) if flags & KIND_BITS == other]
            for other in sorted({flags & KIND_BITS for flags in all_flags})
        }
        words = ", ".join(f"{pids} {_KIND_WORDS[Kind(other)]}" for other, pids in at.items())
        raise SyncMismatchError(
            f"the processes end this superstep differently: {words}; all make the same syncs, so "
            f"no sync stands in an if that only some of them enter"
        )

    # -- after the meeting, in this order -----------------------------------------------------

    def prepare(self, engine: Engine, all_flags: int) -> None:
        """Let registrations take effect, and do the checks that could not be done at the calls.

        Args:
            engine: whose superstep ends.
            all_flags: what the flags of all processes say together.
        """
        if all_flags & HAS_NOTICE:
            self._agree(engine)
        if all_flags & UNRESOLVED:
            self._resolve(engine)

    def _agree(self, engine: Engine) -> None:
        """Compare what the processes have announced, and store it."""

        def find() -> Agreement:
            return agreement_of([self._notice_of(engine, pid) for pid in range(engine.nprocs)])

        for registration in self._registry.agree(self._port.once(find)):
            address = registration.address if registration.is_contiguous else 0
            engine.arrivals.define(registration.slot, address)
        engine.forget_known_arrays()

    def _notice_of(self, engine: Engine, source: int) -> Any:
        """Return what a process has announced to all; nothing if it has announced nothing."""
        for entry in engine.arrivals.posted_for(source, engine.nprocs):
            if entry[0] == NOTICE:
                return marshal.loads(self.data_of(source, entry))
        return ()

    def _resolve(self, engine: Engine) -> None:
        """Check what could not be checked at the calls, and wait for all to have done so.

        Where a check fails, no process has written anything yet.
        """
        for target in engine.unresolved:
            target.resolve()
        engine.unresolved.clear()
        engine.meeting.meet(0, 0, 0)

    def answer(self, engine: Engine) -> int:
        """Make entries of what others get from here; return the head word of a post with them."""
        if engine.replies is None:
            engine.replies = SendBuffer(engine.pid, engine.nprocs, self._port.send_buffer_memory())
        for source in range(engine.nprocs):
            for entry in engine.arrivals.entries_of(source):
                if entry[0] in (ASK, STAGED_ASK):
                    get, _ = unpacked(entry[3])
                    indices = self.data_of(source, entry) if entry[4] else b""
                    nbytes = count_of(get, entry[4]) * self._registry.itemsize(get.slot)
                    self._reply(engine, source, get, indices, nbytes)
        head: int = engine.replies.complete(engine.meeting.inline_address())
        return head

    def _reply(self, engine: Engine, source: int, get: Named, indices: Any, nbytes: int) -> None:
        """Add the values that a process gets from here to the answers."""
        if engine.is_small(nbytes):
            memory = np.empty(nbytes, np.uint8)
            read_source(self._registry, get, indices, memory)
            engine.replies.describe(source, REPLY, b"", 0, memory)
            return
        (_, where, _), memory = self._port.stage(nbytes, source)
        read_source(self._registry, get, indices, memory)
        engine.replies.describe_staged(source, STAGED_REPLY, b"", 0, where, nbytes)

    def take_answers(self, engine: Engine) -> None:
        """Find the answers to the gets of this process, which has met the others once more."""
        asked = {pid for _, there, _, pid, _ in engine.gets if not there}
        self._answers = {pid: iter(engine.arrivals.posted_for(pid, engine.pid)) for pid in asked}

    def write_answer(self, pending: PendingGet) -> None:
        """Write the values of the next get that another process has answered."""
        pending.write(self.data_of(pending.pid, next(self._answers[pending.pid])))

    def after_delivery(self, engine: Engine) -> None:
        """End the registrations that have been popped, and let a size of tags take effect."""
        self.free(self._registry.drop_popped())
        if self.tag_size != self.next_tag_size:
            self.tag_size = self.next_tag_size
            engine.heads_out.clear()  # from now on the mailbox checks every tag

    def data_of(self, source: int, entry: Entry) -> Any:
        """Return the data of an entry as bytes, where they are."""
        kind, *_, where, nbytes = entry
        if kind & 1:
            return array_at((nbytes,), _BYTE, where, nbytes)
        return self._port.fetch((source, where, nbytes))

    def free(self, registrations: list[Registration]) -> None:
        """Give back the memory of arrays."""
        if self._watch is not None:
            self._watch.free(registrations)
            return
        for registration in registrations:
            assert registration.memory is not None  # or it would not be among them
            self._port.release(registration.memory)

    # -- memory of other processes, and for them ------------------------------------------------

    def stage(self, values: Any, to: int) -> int:
        """Stage the values of a put; return where they are, -1 where there is no memory."""
        try:
            return self._port.stage_values(values, to)
        except BspError:  # the call is checked, and tries again: its error names the line
            return -1

    def fetch(self, source: int, where: int, nbytes: int) -> memoryview:
        """Return what a process has staged."""
        return self._port.fetch((source, where, nbytes))

    def find_there(self, known: KnownArray, pid: int) -> int:
        """Find out, once, where the array of another process lies for this one; 1 if nowhere."""
        there = self._registry.at(known.slot).announced_on(pid)
        found = 1
        if there is not None and there.shared_address is not None:
            memory = self._port.reach(pid, there.shared_address, known.sizes[pid])
            if memory is not None:
                found = address(np.frombuffer(memory, np.uint8))
        known.addresses[pid] = found
        return found
