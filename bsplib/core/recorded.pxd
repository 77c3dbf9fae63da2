cimport cython
from bsplib.core.atomics cimport now_ns, prepare
from bsplib.core.log cimport Log, Traffic
from bsplib.core.observed cimport ObservedEngine, EngineObserver
from bsplib.core.stack_keys cimport StackKeys

cdef int _SYNC, _END

cdef class RecordingObserver(EngineObserver):
    cdef readonly Log log
    cdef Log _above
    cdef readonly Traffic traffic
    cdef StackKeys _stack_keys
    cdef object _stack_of_end
    cdef object _overflow
    cdef long long _arrive

    cpdef long long meet(self, ObservedEngine engine) except -1
    @cython.locals(end=cython.longlong, released=cython.longlong, stack=int)
    cpdef int delivered(self, ObservedEngine engine, int kind, Py_ssize_t superstep) except -1
    cpdef void leave(self, ObservedEngine engine) except *
    @cython.locals(stack=int)
    cpdef void left(self, ObservedEngine engine) except *
    @cython.locals(log=Log)
    cdef int _write_record(
        self, ObservedEngine engine, Py_ssize_t superstep, int kind, int stack, long long released,
        long long end
    ) except -1
    cdef int _write_or_report_overflow(
        self, ObservedEngine engine, Py_ssize_t superstep, int kind, int stack, long long released,
        long long end
    ) except -1

cdef long long _time_of(ObservedEngine engine) noexcept
