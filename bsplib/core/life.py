"""The life of a group in one of its processes.

The **token of life** of a group is the attribute ``quick`` of its engine: the thread that may use
it, which every call compares with its own. It is taken away when the life of the group changes, for
whatever reason; then each call is checked, and says why. A life goes on to a greater number only,
except that a group that rests is used again.
"""

USABLE = 0
RESTING = 1
"""A sub-group is open, or the process is in no sub-group of a split, until that is left."""
CLOSED = 2
"""The group has been left, or a superstep of it has failed or was interrupted."""
OVER = 3
"""Its run has ended, or this process was forked from the one that runs ``main``."""
