cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport (
    address_of, itemsize_of, peek, peek_half, poke, prepare, word, wrapped,
)

cdef word _SIGN_OF_HALF

cpdef bint can_add(object dtype) except -1
@cython.locals(count=word)
cpdef int add_integers(cnp.ndarray sums, cnp.ndarray groups, cnp.ndarray values) except -1
@cython.locals(at=word, value=word, place=word)
cdef void _add(word sums, word groups, word count, word values, word itemsize) noexcept
