"""The stretch of the program in which a superstep was computed, without samples.

A superstep begins where the sync before it ended, and ends where it is called. The two call stacks
agree down to one function; there, the superstep is the stretch between two lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from bsplib.recording.records import Stack


class Stretch(NamedTuple):
    """A part of a function, from one line to another."""

    file: str
    function: str
    first: int
    """Line of the call at its beginning; 0: the function begins there."""
    last: int
    """Line of the call at its end."""

    @property
    def text(self) -> str:
        """The stretch in words."""
        file = fmt.visible(self.file.rpartition("/")[2])
        function = f"{fmt.visible(self.function)} ({file})" if file else fmt.visible(self.function)
        if not self.first:
            return f"from the beginning to line {self.last} of {function}"
        if self.first == self.last:
            return f"from line {self.first} to the next time there in {function}"
        if self.first > self.last:
            return f"from line {self.first} to line {self.last} in the next round in {function}"
        return f"between line {self.first} and line {self.last} of {function}"


def stretch_of(before: Stack | None, after: Stack) -> Stretch:
    """Return the stretch between two syncs.

    Args:
        before: stack of the sync before; None: the stretch begins with the program.
        after: stack of the sync at the end.
    """
    if before is None:
        frame = after[0]
        return Stretch(frame.file, frame.function, 0, frame.line)
    depth = 0
    deepest = min(len(before), len(after)) - 1
    while depth < deepest and before[depth] == after[depth]:
        depth += 1
    one, other = before[depth], after[depth]
    if one[:3] != other[:3]:  # two functions that one line calls: its function has the stretch
        depth = max(depth - 1, 0)
        one, other = before[depth], after[depth]
    first = one.line if one[:3] == other[:3] else 0
    return Stretch(other.file, other.function, first, other.line)
