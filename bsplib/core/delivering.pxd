cimport cython
from bsplib.core.atomics cimport address_of, bytearray_at, bytes_at, copy, peek, prepare, word
from bsplib.core.box cimport (
    BYTE_MASK, CARD_ROOM, CARD_SIZE_MASK, HEAD_BYTES, IN_BOX, KIND_SHIFT, MESSAGE, MOST_SLOTS,
    ON_CARD, PUT, RECEIVER_SHIFT, SIZE_MASK, SLOT_SHIFT, STAGED_PUT,
)
from bsplib.core.collecting cimport Collecting
from bsplib.core.meeting cimport Meeting

cdef word HAS_GET, KIND_BITS, UNRESOLVED

cdef class Delivering(Collecting):
    @cython.locals(
        meeting=Meeting, me=word, needs_long_way=bint, held=word, any_card=bint, source=int, theirs=word,
        head=word, kind=word, first=word, chunk=word,
    )
    cdef void _deliver(self, word note) except *
    @cython.locals(at=word, source=int, nbytes=word)
    cdef void _keep_cards(self) except *
    @cython.locals(there=word, nbytes=word, size=word, at=word)
    cdef void _read_gets(self) except *
    @cython.locals(nbytes=word, at=word)
    cdef void _write_gets(self) except *
    @cython.locals(head=word, first=word, kind=word, nbytes=word, slot=word, here=word)
    cdef void _apply(self, int source, word at, word stop) except *
    @cython.locals(is_large=bint)
    cdef word _receive(self, int source, word kind, word at, word size, word nbytes) except 0
    cdef object _head_in(self, bytes encoded)
    @cython.locals(size=word)
    cpdef void _define(self, word slot, word address) except *
    @cython.locals(head=word, kind=word, table=word, at=word)
    cpdef list _records_from(self, int source)
    cpdef list _own_records(self, int to)
