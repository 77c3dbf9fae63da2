"""The driver of a pool on the ranks of an MPI: take a sample on request.

``python -m benchmarks.pool_peer NPROCS SOCKET`` connects to the socket. For every line of JSON that
it receives, it runs a program of :mod:`benchmarks.programs`, or probes the hosts, and answers with
the seconds, as :mod:`benchmarks.mpi_peer` does.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import bsplib
from benchmarks import programs
from bsplib.machine.probing.probe import probe


def probed(nprocs: int, figure: str, rounds: int) -> float:
    """Return a figure that a probe finds.

    Args:
        nprocs: number of processes.
        figure: ``g``, in seconds a byte, or ``l``, in seconds.
        rounds: how often the probe measures.
    """
    value: float = getattr(probe(nprocs, "hosts", backend="mpi", rounds=rounds).machine, figure)
    return value


def main(nprocs: int, address: Path) -> None:
    """Take samples until the other side closes the socket."""
    with socket.socket(socket.AF_UNIX) as plug, bsplib.Pool(nprocs, backend="mpi") as pool:
        plug.connect(str(address))
        with plug.makefile("r", encoding="utf-8") as requests:
            for line in requests:
                request = json.loads(line)
                name, arguments = request["program"], request["arguments"]
                if name == probed.__name__:
                    seconds = probed(nprocs, **arguments)
                else:
                    seconds = pool.run(getattr(programs, name), **arguments)[0]
                plug.sendall(json.dumps({"rank": 0, "seconds": seconds}).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
