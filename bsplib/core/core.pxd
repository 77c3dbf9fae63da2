cimport cython
from bsplib.core.atomics cimport prepare, this_thread, word
from bsplib.core.box cimport Box
from bsplib.core.delivering cimport Delivering
from bsplib.core.log cimport Log
from bsplib.core.meeting cimport Meeting

cdef word HAS_ASKS, HAS_GET, _SYNC
cdef Py_ssize_t _OWN_FRAMES

cdef class Core(Delivering):
    @cython.locals(meeting=Meeting, box=Box, note=word, head=word, nothing_new=bint)
    cdef int _end_by_meeting(self, word kind, word stamp) except -1
    @cython.locals(
        log=Log, arrive=cython.longlong, end=cython.longlong, released=cython.longlong,
        superstep=Py_ssize_t, stack=int,
    )
    cdef void _sync_recorded(self) except *
    @cython.locals(log=Log, pid=int, nbytes=word, messages=word)
    cdef int _log_counts(self) except -1
