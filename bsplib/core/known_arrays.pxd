cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport (
    FLOAT, INTEGER, address_of, copy, is_of, is_packed, itemsize_of, length_of, nbytes_of, ndim_of,
    peek, poke, prepare, stride_of, word, wrapped,
)

cdef word DENSE_BYTES, _AXIS_BYTES

cdef class KnownArray:
    cdef public cnp.ndarray array
    cdef public object dtype
    cdef public Py_ssize_t slot
    cdef public word itemsize, here
    cdef public word[::1] sizes, addresses
    cdef public bint alike, has_views
    cdef public int number
    cdef readonly cnp.ndarray words
    cdef readonly word strided, strided_end
    @cython.locals(
        start=word, first=word, end=word, used=word, words=word, axis=int, length=word,
        step=Py_ssize_t, along=int,
    )
    cpdef word strided_of(self, object view) except? 0
    @cython.locals(
        stride=Py_ssize_t, axis=int, size=Py_ssize_t, index=Py_ssize_t, by=Py_ssize_t,
        last=Py_ssize_t,
    )
    cdef int _axis_along(self, Py_ssize_t first, Py_ssize_t step, Py_ssize_t length)
    @cython.locals(block=word)
    cdef word _end_strided(self, word first, word words)

cpdef void scatter(word strided, word array, word at) noexcept
cpdef void gather(word strided, word array, word at) noexcept
@cython.locals(axes=word, block=word)
cdef word _walk_view(word strided, word array, word at, bint scatters) noexcept
@cython.locals(length=word, step=word, _number=word)
cdef word _walk(word axes, word left, word block, word here, word at, bint scatters) noexcept
