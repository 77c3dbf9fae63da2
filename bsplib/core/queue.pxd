cimport cython

cdef class Queue:
    cdef public list messages
    cdef public Py_ssize_t next, lasting
    cpdef void fill(self, list messages) except *
    @cython.locals(count=Py_ssize_t)
    cpdef bint clear(self) except -1
    cpdef tuple take(self)
