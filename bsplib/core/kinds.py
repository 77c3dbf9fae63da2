"""The kinds of entries, and how words and the shared file are divided.

The form of an entry is in :mod:`bsplib.core.entries`. An odd number is that of a kind whose
data are in the entry itself.
"""

PUT, STAGED_PUT = 1, 2
"""A put of elements that follow each other in a contiguous array."""
MESSAGE, STAGED_MESSAGE = 3, 4
STRIDED = 5
"""A put of elements at regular distances; :mod:`bsplib.core.known_arrays` describes them."""
PLACED, STAGED_PLACED = 7, 8
"""A put to any other place; the primitives describe it."""
ASK, STAGED_ASK = 9, 10
"""A get that the receiver answers. The kinds before it carry values of the program there."""
REPLY, STAGED_REPLY = 11, 12
"""The values that answer a get."""
NOTICE = 13
"""What a process announces to all: its registrations."""

KIND_SHIFT = 60
"""Where the kind begins in word 0 of an entry, and the place in the head word of a post."""
BYTE_MASK = (1 << KIND_SHIFT) - 1
SLOT_SHIFT = 40
"""Where the slot begins in word 0 of an entry; the bytes of the data are below."""
MOST_SLOTS = 1 << KIND_SHIFT - SLOT_SHIFT
SIZE_MASK = (1 << SLOT_SHIFT) - 1
INDICES_SHIFT = 32
"""Where the number of indices begins in word 1 of an entry; the bytes of the description are
below."""
DESCRIPTION_MASK = (1 << INDICES_SHIFT) - 1
RECEIVER_SHIFT = 32
"""Where the receiver begins in the head word of an inline entry; its size is below."""
INLINE_SIZE_MASK = (1 << RECEIVER_SHIFT) - 1
INLINE_BYTES = 216
"""Most bytes of the inline entry: what a cell has room for."""

INLINE, IN_BUFFER = 1, 2
"""The places that the head word of a post names: they say where its entries are. A greater number
stands for entries that were sent, and lie one after the other in memory of the receiver."""
SENT_HEAD = 3 << KIND_SHIFT
"""The head word of a post whose entries were sent."""

SUPERSTEP_SHIFT, MEETING_SHIFT = 24, 16
"""Where both numbers begin in the word that announces a post; see shm/control.py."""
CHUNK_SHIFT = 20
"""Binary logarithm of the bytes of a chunk, and of the first window. Windows have whole chunks; see
shm/segment.py."""
AREA_SHIFT = 44
"""Binary logarithm of the bytes of an area; most of it is a hole in the file."""
