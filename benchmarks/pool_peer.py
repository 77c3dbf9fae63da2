"""The program of a pool, perhaps in all ranks of an MPI: take a sample on request.

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
from bsplib.backends.table import own_rank
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


def _told(_: bsplib.Group, line: str) -> str:
    """Let all ranks know what process 0 was asked for."""
    return line


def main(backend: str, nprocs: int, address: Path) -> None:
    """Take samples until the other side closes the socket, which only rank 0 has."""
    leads = not own_rank()
    with socket.socket(socket.AF_UNIX) as plug, bsplib.Pool(nprocs, backend=backend) as pool:
        if leads:
            plug.connect(str(address))
        with plug.makefile("r", encoding="utf-8") as requests:
            while line := pool.run(_told, requests.readline() if leads else "")[0]:
                request = json.loads(line)
                name, arguments = request["program"], request["arguments"]
                if name == probed.__name__:
                    seconds = probed(nprocs, **arguments)
                else:
                    seconds = pool.run(_program(name), **arguments)[0]
                if leads:
                    plug.sendall(json.dumps({"rank": 0, "seconds": seconds}).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
