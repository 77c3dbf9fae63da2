cimport cython
from bsplib.core.atomics cimport this_thread, word
from bsplib.core.send_buffer cimport SendBuffer
from bsplib.core.known_arrays cimport KnownArray
from bsplib.core.meeting cimport Meeting
from bsplib.core.queue cimport Queue

cdef word _MOST_SHARED, _MOST_PRIVATE

cdef class EngineState:
    cdef readonly int pid
    cdef readonly int nprocs
    cdef readonly word thread
    cdef readonly word quick
    cdef word _quick_if_usable
    cdef readonly Meeting meeting
    cdef readonly SendBuffer send_buffer
    cdef object rare
    cdef object checks
    cdef word most_in_buffer
    cdef readonly Py_ssize_t superstep
    cdef readonly object unusable
    cdef readonly list changes
    cdef readonly list unresolved
    cdef readonly dict known_arrays
    cdef object _last_array
    cdef KnownArray _known
    cdef int _to
    cdef readonly list gets
    cdef readonly bint asks
    cdef public SendBuffer replies
    cdef readonly bint gets_are_direct
    cdef readonly dict early_gets
    cdef object _read
    cdef readonly dict heads_out
    cdef readonly bint has_early
    cdef readonly word[::1] early_puts
    cdef word[::1] _here
    cdef readonly Queue queue
    cdef dict _heads_in
    cdef readonly dict dtypes
    cdef bint _delivers
    cdef word[::1] _first
    cdef word[::1] _stop
    cdef object _inline

    cdef void _declare_transfers(self) except *
    cdef void _declare_arrivals(self) except *
    cpdef void suspend(self, str reason) except *
    cpdef void resume(self) noexcept
    cpdef bint is_usable(self) noexcept
    cpdef void forget_known_arrays(self) except *
    cdef int count_early(self, int to, word nbytes) except -1
    @cython.locals(pid=int)
    cpdef int next_superstep(self) except -1
    cpdef long long begin_call(self) except? -1
    cpdef int end_call(self, long long began) except -1
    cpdef void leave(self) except *
    cpdef void left(self) except *
