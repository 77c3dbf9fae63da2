"""The driver of a pool, perhaps on the ranks of an MPI: take a sample on request.

``python -m benchmarks.pool_peer BACKEND NPROCS SOCKET`` connects to the socket. For every line of
JSON that it receives, it runs a program of :mod:`benchmarks.programs`, or of the module before the
colon in its name, or probes the hosts. It answers with the seconds, as :mod:`benchmarks.mpi_peer`
does.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import bsplib
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


def _program(name: str) -> Callable[..., float]:
    module, _, function = name.rpartition(":")
    found: Callable[..., float] = getattr(
        import_module(f"benchmarks.{module or 'programs'}"), function
    )
    return found


def main(backend: str, nprocs: int, address: Path) -> None:
    """Take samples until the other side closes the socket."""
    with socket.socket(socket.AF_UNIX) as plug, bsplib.Pool(nprocs, backend=backend) as pool:
        plug.connect(str(address))
        with plug.makefile("r", encoding="utf-8") as requests:
            for line in requests:
                request = json.loads(line)
                name, arguments = request["program"], request["arguments"]
                if name == probed.__name__:
                    seconds = probed(nprocs, **arguments)
                else:
                    seconds = pool.run(_program(name), **arguments)[0]
                plug.sendall(json.dumps({"rank": 0, "seconds": seconds}).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
