cdef class Queue:
    cdef public list messages
    cdef public Py_ssize_t next
    cpdef void fill(self, list messages) except *
    cpdef void clear(self) except *
    cpdef tuple take(self)
