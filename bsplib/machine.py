"""A Machine: the parameters of a computer in the BSP cost model.

Machines are TOML files, in seconds and bytes, with the source of every figure. A
literature that fits L below zero, or prints no speed, leaves gaps: what needs a
missing figure asks for it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from bsplib.errors import UsageError

_FOLDER = "machines"


@dataclass(frozen=True)
class Machine:
    """What a superstep costs: ``max w + h g + l``."""

    name: str
    source: str
    """Where the figures come from."""
    g: float
    """Seconds for each byte of an h-relation."""
    l: float  # noqa: E741  # the field's name
    """Seconds for the end of a superstep; never negative."""
    p: int | None = None
    """Processes that it has; None where any number may be asked of it."""
    h: str = "max"
    """``max`` or ``sum``: of the bytes in and the bytes out."""

    def relation(self, h_in: int, h_out: int) -> int:
        """Return the h of a process from its bytes in and out."""
        return h_in + h_out if self.h == "sum" else max(h_in, h_out)

    def price(self, h: int) -> float:
        """Return the seconds of communication and synchronisation, g h + l."""
        return self.g * h + self.l

    def two_stages_pay(self, nbytes: int, nprocs: int) -> bool:
        """Tell whether a broadcast is faster in two stages than in one.

        Args:
            nbytes: size of what is broadcast.
            nprocs: number of processes.

        Source: Jarvis et al. 2002, equation 8: n > l / (p g - 2 g).
        """
        return nprocs > 2 and nbytes * (nprocs * self.g - 2 * self.g) > self.l


def known_machines() -> list[str]:
    """Return the names of the Machines that come with bsplib."""
    folder = resources.files("bsplib") / _FOLDER
    return sorted(Path(str(entry)).stem for entry in folder.iterdir() if entry.name != "README.md")


def load_machine(name: str) -> Machine:
    """Return a Machine by name, or from a TOML file.

    Args:
        name: one of :func:`known_machines`, or the path of a file ending in ``.toml``.

    Raises:
        UsageError: there is none, or its file lacks a figure.
    """
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"machine: there is no file {name}")
        return _parse(_read(path), name)
    entry = resources.files("bsplib") / _FOLDER / f"{name}.toml"
    if name not in known_machines():
        raise UsageError(
            f"machine: {name!r} is none of {', '.join(known_machines())}; name one of them "
            f"or a .toml file"
        )
    return _parse(entry.read_text(encoding="utf-8"), name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"machine: {path}: {error}") from None


def _parse(text: str, where: str) -> Machine:
    try:
        values: dict[str, Any] = tomllib.loads(text)
        return _checked(
            Machine(
                name=str(values["name"]),
                source=str(values["source"]),
                g=float(values["g_s_per_byte"]),
                l=float(values["l_s"]),
                p=int(values["p"]) if "p" in values else None,
                h=str(values.get("h", "max")),
            )
        )
    except KeyError as error:
        raise UsageError(f"machine: {where} has no entry {error}") from None
    except (tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise UsageError(f"machine: {where}: {error}") from None


def _checked(machine: Machine) -> Machine:
    for name in ("g", "l"):
        if not 0 <= getattr(machine, name) < 1:
            raise ValueError(f"{name} is {getattr(machine, name)}; it may be 0 to 1 second")
    if machine.p is not None and machine.p < 1:
        raise ValueError(f"p is {machine.p}; it may be 1 or more")
    if machine.h not in ("max", "sum"):
        raise ValueError(f"h is {machine.h!r}; it may be 'max' or 'sum'")
    return machine
