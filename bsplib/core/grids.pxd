cimport cython
from bsplib.core.atomics cimport address_of, copy, peek, prepare, word, wrapped

cdef word HEAD_BYTES, AXIS_BYTES

@cython.final
cdef class GridWords:
    cdef object _memory
    cdef readonly word words

cpdef void scatter(word grid, word array, word at) noexcept
cpdef void gather(word grid, word array, word at) noexcept
@cython.locals(length=word, step=word, _number=word)
cdef word _walk(word axes, word left, word block, word here, word at, bint scatters) noexcept
