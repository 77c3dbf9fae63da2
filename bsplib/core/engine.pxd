cimport cython
from bsplib.core.atomics cimport prepare, this_thread, word
from bsplib.core.send_buffer cimport SendBuffer
from bsplib.core.delivering cimport Delivering
from bsplib.core.meeting cimport Meeting

cdef word HAS_ASKS, HAS_GET, _SYNC

cdef class Engine(Delivering):
    cdef int put(self, object bsp, object pid, object src, object dst, object offset, object at) except -1
    cdef int hpput(self, object bsp, object pid, object src, object dst, object offset, object at) except -1
    cdef object get(
        self, object bsp, object pid, object src, object dst, object offset, object at, object count
    )
    cdef object hpget(
        self, object bsp, object pid, object src, object dst, object offset, object at, object count
    )
    cdef int put_at(
        self, object bsp, object pids, object indices, object values, object dst, object op
    ) except -1
    cdef object get_at(self, object bsp, object pids, object indices, object src, object out)
    cdef int send(self, object bsp, object pid, object payload, object tag) except -1
    cdef object messages(self, object bsp)
    cdef object move(self, object bsp)
    cdef object hpmove(self, object bsp)
    cdef int sync(self, object bsp) except -1
    cdef int oblsync(self, object bsp, object n) except -1
    @cython.locals(meeting=Meeting, send_buffer=SendBuffer, flags=word, head=word, nothing_new=bint)
    cpdef int end(self, object bsp, word kind, word stamp) except -1
