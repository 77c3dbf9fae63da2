cimport cython
from bsplib.core.atomics cimport (
    address_of, array_at, bytearray_at, bytes_at, copy, copy_out, nbytes_of, peek, poke, prepare, word,
    wrapped, write_bytes,
)
from bsplib.core.known_arrays cimport scatter
from bsplib.core.meeting cimport Meeting
from bsplib.core.queue cimport Queue

cdef word ASK, IN_BUFFER, INDICES_SHIFT, INLINE, INLINE_BYTES, KIND_SHIFT, MESSAGE, PUT
cdef word STAGED_MESSAGE, STAGED_PLACED, STAGED_PUT, STRIDED, KIND_BITS
cdef word DESCRIPTION_MASK, SLOT_SHIFT, SIZE_MASK, MOST_SLOTS, HEAD_BYTES, BYTE_MASK
cdef word RECEIVER_SHIFT, INLINE_SIZE_MASK
cdef word MOST_LARGE, _MOST_OF_LARGE, _LEAST_CHUNK, _MOST_CHUNK, _LEAST_BLOCK
cdef Py_ssize_t MOST_HEADS
cdef object _BYTE

cdef class PrivateMemory:
    cdef list _arrays
    cpdef tuple allocate(self, word nbytes)

@cython.final
cdef class SendBuffer:
    cdef readonly word pid, nprocs, all
    cdef readonly bint holds_inline, holds_more
    cdef object _allocate
    cdef word[::1] _next, _stop, _chunk, _touched
    cdef word _count, _large_bytes
    cdef object _inline_memory
    cdef word _inline, _inline_to, _inline_bytes
    cdef tuple _blocks
    cdef word _side, _used_blocks, _table, _table_byte, _top, _end, _delta

    @cython.locals(size=word, entry=word)
    cpdef word reserve(self, word to, word head, word first, word nbytes) except 0
    @cython.locals(nbytes=word, at=word)
    cpdef void describe(self, int to, word kind, bytes description, word indices, object data) except *
    cpdef void describe_staged(
        self, int to, word kind, bytes description, word indices, word where, word nbytes
    ) except *
    @cython.locals(size=word, padded=word, first=word, at=word)
    cdef word reserve_described(
        self, int to, word kind, bytes description, word indices, word nbytes, word behind
    ) except 0
    cdef bint takes(self, word nbytes) noexcept
    @cython.locals(pid=word, entry=word, blocks=list)
    cdef void _open(self) except *
    @cython.locals(byte=word, address=word, nbytes=word)
    cdef void _enter(self, tuple block) except *
    @cython.locals(last=word, used=word, chunk_bytes=word, chunk=word)
    cdef word _new_chunk(self, word to, word size) except 0
    @cython.locals(blocks=list, block=tuple)
    cdef void _next_block(self, word nbytes) except *
    @cython.locals(number=word, to=word)
    cpdef word complete(self, word cell) noexcept
    cpdef void unfold(self) except *
    cdef void change_side(self) noexcept
    @cython.locals(number=word, to=word)
    cpdef void clear(self) noexcept
    cpdef word first_byte(self, word to) noexcept

@cython.final
cdef class Arrivals:
    cdef readonly Queue queue
    cdef readonly bint kinds_differ
    cdef int _pid, _nprocs
    cdef Meeting _meeting
    cdef object _slow_path
    cdef word _most_in_buffer
    cdef word[::1] _here
    cdef dict _heads
    cdef bint _is_open
    cdef word[::1] _first, _stop
    cdef bint _any_inline
    cdef object _inline
    cdef word _chunk, _chunk_byte

    @cython.locals(size=word)
    cpdef void define(self, word slot, word address) except *
    @cython.locals(meeting=Meeting, all_flags=word, source=int, theirs=word, head=word)
    cdef word find(self, word flags) except? 0
    @cython.locals(meeting=Meeting, kind=word)
    cdef int _find_from(self, int source, word head) except -1
    @cython.locals(at=word, source=int, nbytes=word)
    cdef void keep_inline(self) except *
    cpdef list entries_of(self, int source)
    @cython.locals(meeting=Meeting, head=word, kind=word, table=word, at=word, size=word)
    cpdef list posted_for(self, int source, int receiver)
    @cython.locals(source=int, first=word, chunk=word)
    cdef int apply_all(self) except -1
    @cython.locals(head=word, first=word, kind=word, nbytes=word, slot=word, here=word)
    cpdef int apply(self, int source, word at, word stop) except -1
    @cython.locals(here=word)
    cdef int _write_staged(
        self, int source, word slot, word first, word where, word nbytes
    ) except -1
    cdef word _receive(self, int source, word kind, word at, word size, word nbytes) except 0
    cdef object _content(self, int source, object head, word at, word nbytes)
    @cython.locals(size=word, data=word, stop=word)
    cdef word _place(self, int source, word kind, word at, word first, word nbytes) except 0
    cdef object _head_in(self, bytes encoded)

@cython.locals(chunk=word)
cpdef list entries_at(Meeting meeting, word byte)
@cython.locals(
    head=word, first=word, kind=word, nbytes=word, slot=word, indices=word, size=word,
    entries=list, description=bytes,
)
cpdef list entries_between(word at, word stop)
@cython.locals(chunk=word, parts=list)
cpdef bytes joined(Meeting meeting, word byte)
@cython.locals(kind=word, table=word, to=word, first=word, found=dict)
cpdef dict by_receiver(Meeting meeting, word head, word nprocs)
@cython.locals(at=word)
cpdef object amounts_of(object sent)
@cython.locals(head=word, kind=word, nbytes=word, direction=word, more=word)
cpdef int add_amounts(word at, word stop, word[::1] amounts) except -1
@cython.locals(head=word, kind=word, nbytes=word, description=word)
cpdef word behind(word at) noexcept
cpdef word index_bytes(word indices) noexcept
