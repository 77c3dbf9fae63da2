cimport cython
from bsplib.core.atomics cimport bytes_at, peek, word
from bsplib.core.box cimport (
    HEAD_BYTES, KIND_SHIFT, MESSAGE, MOST_SLOTS, PUT, SIZE_MASK, SLOT_SHIFT, STAGED_MESSAGE,
)
from bsplib.core.meeting cimport Meeting

@cython.locals(chunk=word)
cpdef list records_at(Meeting meeting, word byte)
@cython.locals(
    head=word, first=word, kind=word, nbytes=word, slot=word, is_message=bint, records=list,
)
cpdef list records_between(word at, word stop)
