# The types of log.py when it is compiled.
cimport cython

from bsplib.core.atomics cimport cpu_ns
from bsplib.core.rows cimport Rows


@cython.final
cdef class Log:
    cdef Rows _supersteps, _traffic
    cdef int _number, _pid, _member
    cdef object _members
    cdef bint _measures_cpu
    cdef long long _began_ns, _start_ns, _opened_ns, _sub_ns
    cdef long long _cpu_start_ns, _cpu_opened_ns, _cpu_sub_ns, _cpu_ns
    cdef long long _own_bytes, _own_messages

    @cython.locals(used=cython.longlong)
    cpdef void arrive(self) noexcept
    cpdef int add_traffic(
        self, int partner, int direction, long long nbytes, long long messages
    ) except -1
    @cython.locals(began=cython.longlong, computed=cython.longlong)
    cpdef int add_superstep(
        self, long long superstep, int kind, int stack, long long arrive_ns,
        long long released_ns, long long end_ns, long long comm_ns,
    ) except -1
    cpdef void begin_cpu_time(self) noexcept
    cpdef void begin(self, long long start_ns) noexcept
    @cython.locals(parent=Log)
    cpdef int leave(self, Log parent, long long now_ns) except -1
