cimport cython
from bsplib.core.atomics cimport word
from bsplib.core.log cimport Log

cdef int IN, OUT

@cython.final
cdef class Traffic:
    cdef int _nprocs
    cdef bint _is_empty
    cdef word[::1] _sent_bytes
    cdef word[::1] _sent
    cdef word[::1] _got_bytes
    cdef word[::1] _got
    cpdef int sent(self, int to, word nbytes) except -1
    cpdef int got(self, int sender, word nbytes) except -1
    @cython.locals(pid=int)
    cpdef int write(self, Log log) except -1
