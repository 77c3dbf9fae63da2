cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport (
    FLOAT, INTEGER, address_of, is_of, is_packed, itemsize_of, length_of, nbytes_of, ndim_of,
    prepare, word,
)

cdef class Lane:
    cdef public object array
    cdef public object dtype
    cdef public Py_ssize_t slot
    cdef public word itemsize
    cdef public word here
    cdef public word[::1] sizes
    cdef public word[::1] addresses
    cdef public bint alike
    cdef public bint has_views
    cdef public int number
    @cython.locals(
        axes=int, more=int, axis=int, start=word, first=word, row=word, rows=word,
    )
    cpdef Py_ssize_t first_of(self, object view)
