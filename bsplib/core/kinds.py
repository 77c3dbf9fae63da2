"""The kinds of records; an odd number is that of a kind whose data are in the record itself."""

PUT, STAGED_PUT = 1, 2
"""A put of elements that follow each other in a contiguous array."""
MESSAGE, STAGED_MESSAGE = 3, 4
GRID = 5
"""A put of elements at regular distances; :mod:`bsplib.core.grids` describes them."""
PLACED, STAGED_PLACED = 7, 8
"""A put to any other place; the primitives describe it."""
ASK, STAGED_ASK = 9, 10
"""A get that the receiver answers. The kinds before it carry values of the program there."""
REPLY, STAGED_REPLY = 11, 12
"""The values that answer a get."""
NOTICE = 13
"""What a process announces to all: its registrations."""

SENT_HEAD = 3 << 60
"""The head word of a post whose records were sent; see :mod:`bsplib.core.box` for the others."""
