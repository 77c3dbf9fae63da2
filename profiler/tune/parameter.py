"""The parameter to tune, and its values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from bsplib.errors import UsageError
from bsplib.experiments.grid import read_values

_MOST = 1000
"""Greatest number of values: running more would take too long."""


@dataclass(frozen=True)
class Parameter:
    """An option of an application, without its dashes, and its values in rising order."""

    name: str
    values: tuple[int, ...]

    @property
    def option(self) -> str:
        """The option as on a command line."""
        return f"--{self.name}"

    @property
    def geometric(self) -> bool:
        """Whether there are three or more values, each the same multiple of the one before."""
        first, *rest = self.values
        return (
            first > 0
            and len(rest) > 1
            and all(after * first == before * rest[0] for before, after in pairwise(self.values))
        )


def parse_parameter(text: str) -> Parameter:
    """Read a parameter and its values.

    Args:
        text: ``NAME=VALUES``, with values as for :func:`bsplib.experiments.grid.read_values`,
            such as ``grain=1:64:x2``.

    Raises:
        UsageError: the text has another form, a value is no integer, or there are too many.
    """
    name, _, values = text.partition("=")
    name = name.strip().lstrip("-").replace("_", "-")
    if not name or not values:
        raise UsageError(
            f"tune: {text!r} is not a parameter with values; write NAME=A:B, NAME=A:B:+K or "
            f"NAME=A:B:xK, as in oversampling=4:4096:x2"
        )
    found = read_values(f"tune: --set {name}", values)
    integers = sorted(value for value in found if isinstance(value, int))
    if len(integers) < len(found):
        raise UsageError(f"tune: --set {name} {values!r} has to have integers only")
    if len(integers) > _MOST:
        raise UsageError(f"tune: --set {name} {values!r} has more than {_MOST} values")
    return Parameter(name, tuple(integers))
