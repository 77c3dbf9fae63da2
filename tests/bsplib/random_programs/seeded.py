"""Programs from seeds: the same ones in every run, and quicker to draw than by hypothesis."""

from __future__ import annotations

import random
from typing import Any

from .generator import Builder
from .steps import Program


def program_of(seed: int, kind: type[Builder] = Builder) -> Program:
    """Return the program that a seed stands for."""
    numbers = random.Random(seed)

    class Seeded(kind):  # type: ignore[misc,valid-type]  # chosen by the caller
        def number(self, low: int, high: int) -> int:
            return numbers.randint(low, high)

    def draw(strategy: Any) -> Any:
        raise AssertionError(f"{strategy} is not drawn by number()")

    return Seeded(draw).build()
