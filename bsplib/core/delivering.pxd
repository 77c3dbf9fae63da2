cimport cython
from bsplib.core.atomics cimport address_of, array_at, bytearray_at, bytes_at, copy, peek, prepare, word
from bsplib.core.send_buffer cimport (
    BYTE_MASK, INLINE_COPY_BYTES, INLINE_SIZE_MASK, DESCRIPTION_MASK, HEAD_BYTES, IN_BUFFER, KIND_SHIFT, MOST_SLOTS, INLINE, RECEIVER_SHIFT, SIZE_MASK, SLOT_SHIFT,
)
from bsplib.core.collecting cimport Collecting
from bsplib.core.strided cimport StridedView, gather, scatter
from bsplib.core.meeting cimport Meeting

cdef word INDICES_SHIFT, STRIDED, PUT, STAGED_PUT, MESSAGE, STAGED_MESSAGE, STAGED_PLACED

cdef word HAS_ASKS, HAS_GET, HAS_NOTICE, KIND_BITS, UNRESOLVED
cdef object _BYTE

cdef class Delivering(Collecting):
    @cython.locals(
        meeting=Meeting, held=word, differ=bint, any_inline=bint, source=int, theirs=word, head=word,
    )
    cdef int _deliver(self, word flags) except -1
    @cython.locals(source=int)
    cdef int _distribute(self, word held) except -1
    @cython.locals(meeting=Meeting, kind=word)
    cdef bint _find(self, int source, word head) except -1
    @cython.locals(at=word, source=int, nbytes=word)
    cdef void _keep_inline(self) except *
    @cython.locals(head=word)
    cdef int _exchange_gets(self, word held) except -1
    @cython.locals(there=word, nbytes=word, size=word, at=word)
    cdef void _read_gets(self) except *
    @cython.locals(there=word, nbytes=word, at=word)
    cdef void _write_gets(self) except *
    @cython.locals(first=word, chunk=word)
    cdef int _apply_all(self, int source) except -1
    @cython.locals(head=word, first=word, kind=word, nbytes=word, slot=word, here=word)
    cdef int _apply(self, int source, word at, word stop) except -1
    @cython.locals(here=word)
    cdef int _write_staged(
        self, int source, word slot, word first, word where, word nbytes
    ) except -1
    @cython.locals(is_large=bint)
    cdef word _receive(self, int source, word kind, word at, word size, word nbytes) except 0
    @cython.locals(size=word, data=word, stop=word)
    cdef word _place(self, int source, word kind, word at, word first, word nbytes) except 0
    cdef object _head_in(self, bytes encoded)
    @cython.locals(size=word)
    cpdef void define(self, word slot, word address) except *
    cpdef list entries_of(self, int source)
    @cython.locals(meeting=Meeting, head=word, kind=word, table=word, at=word, size=word)
    cpdef list posted_for(self, int source, int receiver)
    cpdef list own_entries(self, int to)
    cpdef void apply_sent(self, int source, word at, word stop) except *

cdef void _read(word at, word there, word nbytes, StridedView strided) noexcept
