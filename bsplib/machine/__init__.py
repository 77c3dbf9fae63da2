"""Machines, the parameters of computers: their text form, and those that come with bsplib."""

from bsplib.machine.parameters import (
    PATTERNS,
    Level,
    Machine,
    Pattern,
    known_machines,
    load_machine,
)

__all__ = ["PATTERNS", "Level", "Machine", "Pattern", "known_machines", "load_machine"]
