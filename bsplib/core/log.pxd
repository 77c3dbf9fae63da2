# The types of log.py when it is compiled.
cimport cython

from bsplib.core.atomics cimport word
from bsplib.core.rows cimport Rows
from bsplib.core.usage cimport Usage

cdef long long _NO
cdef int END, IN, OUT, IN_BY_INDEX, OUT_BY_INDEX

@cython.final
cdef class Log:
    cdef Rows _supersteps, _traffic
    cdef Usage _usage
    cdef int _number, _pid, _member
    cdef object _members
    cdef long long _began_ns, _start_ns, _opened_ns, _end_ns, _sub_ns
    cdef long long _piece_ns, _calls_ns, _comp_open_ns, _comm_open_ns
    cdef long long _comp_cpu, _comp_ready, _comm_cpu, _comm_ready
    cdef long long _comp_minor, _comp_major, _comm_minor, _comm_major
    cdef long long _own_bytes, _own_messages
    cdef readonly long long arrived_ns

    @cython.locals(usage=Usage, faults=cython.longlong)
    cdef void _begin_usage(self) noexcept
    @cython.locals(usage=Usage, is_due=bint, took=cython.longlong)
    cpdef int arrive(self, long long arrive_ns, long long comm_ns) except -1
    @cython.locals(usage=Usage)
    cpdef int suspend(self, long long now_ns, long long comm_ns) except -1
    @cython.locals(calls=cython.longlong, elapsed=cython.longlong)
    cdef int _end_piece(
        self, Usage usage, long long now_ns, long long comm_ns, bint is_due
    ) except -1
    cdef int _end_sync(
        self, Usage usage, long long elapsed, long long end_ns, bint is_due
    ) except -1
    @cython.locals(on_core=cython.longlong)
    cdef void _close(self, Usage usage) noexcept
    cpdef int add_traffic(
        self, int partner, int direction, long long nbytes, long long messages
    ) except -1
    @cython.locals(
        began=cython.longlong, usage=Usage, is_due=bint, computed=cython.longlong,
    )
    cpdef int add_superstep(
        self, long long superstep, int kind, int stack, long long arrive_ns,
        long long released_ns, long long end_ns, long long comm_ns,
    ) except -1
    @cython.locals(usage=Usage)
    cpdef int rest(self, long long now_ns) except -1
    @cython.locals(usage=Usage)
    cpdef int begin(self, long long start_ns) except -1
    @cython.locals(parent=Log)
    cpdef int leave(self, Log parent, long long now_ns) except -1

@cython.final
cdef class Traffic:
    cdef int _nprocs
    cdef bint _is_empty
    cdef word[::1] _sent_bytes
    cdef word[::1] _sent
    cdef word[::1] _got_bytes
    cdef word[::1] _got
    cdef word[::1] _put_bytes
    cdef word[::1] _put_at
    cdef word[::1] _get_bytes
    cdef word[::1] _get_at
    cpdef int sent(self, int to, word nbytes) except -1
    cpdef int got(self, int sender, word nbytes) except -1
    cpdef int sent_by_index(self, int to, word nbytes) except -1
    cpdef int got_by_index(self, int sender, word nbytes) except -1
    @cython.locals(pid=int)
    cpdef int write(self, Log log) except -1
