"""The kinds of losses: what a sentence of a verdict can be about."""

from __future__ import annotations

FIXED, ROTATING, ONE_OFF = "fixed", "rotating", "one-off"
FAN_IN, FAN_OUT, UNEVEN = "fan-in", "fan-out", "uneven exchange"
STEPS, MESSAGES, CORE = "too many supersteps", "too many small messages", "waiting for a core"
BLOCKED, COMMUNICATION, SYSTEM = "blocked", "communication-bound", "time in the system"
PICKLING = "pickling of objects"
KINDS = (
    *(FIXED, ROTATING, ONE_OFF, FAN_IN, FAN_OUT, UNEVEN, STEPS, MESSAGES, CORE),
    *(BLOCKED, COMMUNICATION, SYSTEM, PICKLING),
)
"""Kinds of losses: of computation the first three, of bytes the next three."""

MOST = 0.5
"""Most of something is this share of it."""
LEAST_TOLD = 0.01
"""What is a smaller share of the whole has no sentence of its own."""
