cimport cython
from bsplib.core.atomics cimport now_ns, this_thread, word
from bsplib.core.box cimport Box
from bsplib.core.clock cimport Clock
from bsplib.core.lanes cimport Lane
from bsplib.core.log cimport Log
from bsplib.core.meeting cimport Meeting
from bsplib.core.queue cimport Queue
from bsplib.core.stack_keys cimport StackKeys

cdef word _MOST_SHARED, _MOST_PRIVATE

cdef class QuickState:
    cdef public int _pid
    cdef public int _nprocs
    cdef public word _thread
    cdef public Meeting _meeting
    cdef public Box _box
    cdef word _most_in_box
    cdef public Py_ssize_t _superstep
    cdef public object _unusable
    cdef public bint _checked
    cdef public list _changes
    cdef public list _unresolved
    cdef public bint _timed
    cdef public Clock _clock
    cdef public bint _recorded
    cdef public Log _log
    cdef public StackKeys _stack_keys
    cdef public long long _comm_ns
    cdef public dict _lanes
    cdef object _last_array
    cdef Lane _lane
    cdef int _to
    cdef public list _gets
    cdef public bint _asks
    cdef public Box _replies
    cdef public bint _gets_are_direct
    cdef public dict _early_gets
    cdef object _read
    cdef public object _tag_size
    cdef public dict _heads_out
    cdef public bint _counts
    cdef public bint _has_counts
    cdef public word[::1] _sent_bytes
    cdef public word[::1] _sent
    cdef public word[::1] _got_bytes
    cdef public word[::1] _got
    cdef public bint _has_early
    cdef public word[::1] _early_bytes
    cdef public word[::1] _early_puts
    cdef word[::1] _here
    cdef public Queue _queue
    cdef public dict _heads_in
    cdef public dict _dtypes
    cdef bint _delivers
    cdef word[::1] _first
    cdef word[::1] _stop
    cdef object _cards

    cdef void _declare_time(self) except *
    cdef void _declare_transfers(self) except *
    cdef void _declare_counts(self) except *
    cdef void _declare_arrivals(self) except *
    cdef long long _begin_call(self) except 0
    cdef long long _time_ns(self) noexcept
    cdef void _end_call(self, long long began) except *
    cdef void _count(self, int to, word nbytes) noexcept
    cdef object _zeros(self)
    cpdef void _begin_counts(self) except *
    cdef void _count_get(self, int sender, word nbytes) noexcept
    cdef void _count_early(self, int to, word nbytes) except *
    @cython.locals(pid=int)
    cpdef void _forget_counts(self) except *
