"""The parameters of computers, their text form, and the Machines that come along."""

from bsplib.machine.parameters import PATTERNS, Machine, Pattern, known_machines, load_machine

__all__ = ["PATTERNS", "Machine", "Pattern", "known_machines", "load_machine"]
