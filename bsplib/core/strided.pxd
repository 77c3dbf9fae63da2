cimport cython
from bsplib.core.atomics cimport address_of, copy, peek, prepare, word, wrapped

cdef word HEAD_BYTES, AXIS_BYTES

@cython.final
cdef class StridedView:
    cdef object _memory
    cdef readonly word words

cpdef void scatter(word strided, word array, word at) noexcept
cpdef void gather(word strided, word array, word at) noexcept
cdef void read(word at, word there, word nbytes, StridedView strided) noexcept
@cython.locals(length=word, step=word, _number=word)
cdef word _walk(word axes, word left, word block, word here, word at, bint scatters) noexcept
