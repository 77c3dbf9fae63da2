cimport cython
from bsplib.core.atomics cimport bytes_at, peek, word
from bsplib.core.send_buffer cimport (
    BYTE_MASK, INLINE_SIZE_MASK, DESCRIPTION_MASK, HEAD_BYTES, IN_BUFFER, KIND_SHIFT,
    MOST_SLOTS, INLINE, RECEIVER_SHIFT, SIZE_MASK, SLOT_SHIFT,
)
from bsplib.core.meeting cimport Meeting

cdef word INDICES_SHIFT, STAGED_PUT, ASK

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
@cython.locals(count=word)
cpdef word calls_between(word at, word stop) noexcept
@cython.locals(total=word, head=word, kind=word)
cpdef word payload_between(word at, word stop) noexcept
@cython.locals(head=word, kind=word, nbytes=word, description=word)
cpdef word behind(word at) noexcept
cpdef word index_bytes(word indices) noexcept
