cimport cython
from bsplib.core.atomics cimport address_of, copy, peek, poke, prepare, word, wrapped

cdef word DESCRIPTION_MASK
cdef word KIND_SHIFT, SLOT_SHIFT, SIZE_MASK, MOST_SLOTS, HEAD_BYTES, INLINE_BYTES, BYTE_MASK
cdef word INLINE, IN_BUFFER, RECEIVER_SHIFT, INLINE_COPY_BYTES, INLINE_SIZE_MASK
cdef word _MOST_LARGE, _MOST_OF_LARGE, _LEAST_CHUNK, _MOST_CHUNK, _LEAST_BLOCK

cdef class PrivateMemory:
    cdef list _arrays
    cpdef tuple allocate(self, word nbytes)

@cython.final
cdef class SendBuffer:
    cdef readonly word pid
    cdef readonly word nprocs
    cdef readonly word all
    cdef readonly bint holds_inline
    cdef readonly bint holds_more
    cdef object _allocate
    cdef word[::1] _next
    cdef word[::1] _stop
    cdef word[::1] _chunk
    cdef word[::1] _touched
    cdef word _count
    cdef word _large_bytes
    cdef object _inline_memory
    cdef word _inline
    cdef word _inline_to
    cdef word _inline_bytes
    cdef tuple _blocks
    cdef word _turn
    cdef word _used_blocks
    cdef word _table
    cdef word _table_byte
    cdef word _top
    cdef word _end
    cdef word _delta

    @cython.locals(size=word, entry=word)
    cpdef word reserve(self, word to, word head, word first, word nbytes) except 0
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
    cdef void turn(self) noexcept
    @cython.locals(number=word, to=word)
    cpdef void clear(self) noexcept
    cpdef word first_byte(self, word to) noexcept
