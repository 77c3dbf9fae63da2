"""What a meeting takes over MPI by direct heads, and by rounds of heads, for up to 1024 processes.

What a process computes for one head, and for one round, is measured on a rank. The meetings run in
the simulator then, with these charges and the latency of a network. The figures are written to
``benchmarks/heads.json``; ``bsplib/backends/mpi/PROTOCOL.md`` chooses by them.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

import bsplib
from benchmarks import provenance
from benchmarks.document import write
from bsplib.backends.mpi.launcher_environment import INSIDE
from tests.mpi_installations import MPICH
from tests.mpi_ranks import ranks_of

_FILE = Path(__file__).with_suffix(".json")
_COUNTS = (16, 32, 64, 128, 1024)
_LATENCIES_S = (2e-6, 5e-6, 2e-5, 1e-3)
_HEADS, _SAMPLES = 31, 200
_LABEL = 12345


def seconds(bsp: bsplib.Group) -> tuple[float, float]:
    """Return the least time of this process for a head from another one, and for a round."""
    from mpi4py import MPI  # noqa: PLC0415  # only a rank may load it

    from bsplib.backends.mpi import heads  # noqa: PLC0415
    from bsplib.backends.mpi.meetings import Gathering  # noqa: PLC0415
    from bsplib.backends.mpi.receiving import Inbox  # noqa: PLC0415

    port: Any = bsp._port
    link, itself = port._link, MPI.COMM_SELF
    came = [bytearray(heads.HEAD_BYTES) for _ in range(_HEADS)]
    receives = [itself.Recv_init((each, MPI.BYTE), 0, 1) for each in came]
    head = heads.pack(link.run, heads.MEET, 0, 0, _LABEL, 0, 0, 0, 0, 0)
    sends = [itself.Send_init((bytearray(head), MPI.BYTE), 0, 1) for _ in came]

    def take() -> int:
        done: Any = MPI.Request.Testsome(receives)
        for index in done:
            link._take(index, bytes(came[index]))
        return len(done)

    def direct() -> None:
        MPI.Prequest.Startall(sends)
        missing = _HEADS
        while missing:
            missing -= take()
        MPI.Request.Waitall(sends)
        inbox.meetings.clear()

    def in_round() -> None:
        gathering = Gathering(0, 2, 3, 0, [])
        body = gathering.to_pass_on(0)
        packed = heads.pack(link.run, heads.ROUND, 0, 0, _LABEL, 0, 0, len(body), 0, 0)
        sending = itself.Isend((packed + body, MPI.BYTE), 0, 1)
        while not take():
            pass
        post = inbox.rounds.pop((0, 0))
        gathering.take(0, post.body or b"", post.head.stamp)
        sending.Wait()

    least = [1.0, 1.0]
    for _ in range(_SAMPLES):
        inbox = link._boxes[_LABEL] = Inbox()
        for index, (work, count) in enumerate(((direct, _HEADS), (in_round, 1))):
            MPI.Prequest.Startall(receives if index == 0 else receives[:1])
            start = time.perf_counter()
            work()
            least[index] = min(least[index], (time.perf_counter() - start) / count)
    for request in (*receives, *sends):
        request.Free()
    return least[0], least[1]


def by_direct_heads(bsp: bsplib.Group, head_s: float, round_s: float) -> float:  # noqa: ARG001
    """Meet in one step, in the simulator; return the seconds."""
    bsp.charge((bsp.nprocs - 1) * head_s)
    bsp.sync()
    return bsp.time()


def by_rounds(bsp: bsplib.Group, head_s: float, round_s: float) -> float:  # noqa: ARG001
    """Meet in rounds, in the simulator; return the seconds."""
    for number in range((bsp.nprocs - 1).bit_length()):
        bsp.charge(round_s)
        bsp.send((bsp.pid + (1 << number)) % bsp.nprocs, b"")
        bsp.oblsync(1)
    return bsp.time()


@click.command(help=__doc__)
def main() -> None:
    """Print a line for each latency and number of processes, and keep the figures."""
    os.environ[INSIDE] = "mpi"
    with ranks_of(MPICH, 2):
        head_s, round_s = bsplib.run(seconds, nprocs=2, backend="mpi")[0]
    rows = []
    for latency_s in _LATENCIES_S:
        for nprocs in _COUNTS:
            direct_s, rounds_s = (
                max(
                    bsplib.run(
                        program,
                        head_s,
                        round_s,
                        nprocs=nprocs,
                        backend="sim",
                        machine=f"ideal:g=0:l={latency_s}",
                    )
                )
                for program in (by_direct_heads, by_rounds)
            )
            rows.append(
                {
                    "latency_s": latency_s,
                    "nprocs": nprocs,
                    "direct_s": direct_s,
                    "rounds_s": rounds_s,
                }
            )
            print(
                f"latency {1e6 * latency_s:g} µs, p = {nprocs}: direct {1e6 * direct_s:.0f} µs, "
                f"rounds {1e6 * rounds_s:.0f} µs"
            )
    document = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "head_s": head_s,
        "round_s": round_s,
        "meetings": rows,
    }
    write(document, _FILE)
    print(f"a head {1e6 * head_s:.2f} µs, a round {1e6 * round_s:.2f} µs; wrote {_FILE}")


if __name__ == "__main__":
    main()
