# The types of clock.py when it is compiled.

cimport cython

from bsplib.core.atomics cimport cpu_ns, rounded


@cython.final
cdef class Clock:
    cdef double _scale
    cdef object _read
    cdef long long _ns, _skipped_ns, _prelude_ns, _resumed_ns
    cdef bint _charges, _is_prelude
    cdef Py_ssize_t _inside
    cdef public long long empty_ns

    cpdef long long now(self) noexcept
    cpdef void resume(self) except *
    @cython.locals(now_ns=cython.longlong, used_ns=cython.longlong)
    cpdef void pause(self) except *
    cdef void _measured(self, long long used_ns) noexcept
    cpdef void settle(self) noexcept
    cpdef void advance_to(self, long long moment_ns) noexcept
    cpdef void restart(self) noexcept
    cpdef long long computed_ns(self) noexcept
    @cython.locals(charged_ns=cython.double)
    cpdef bint charge(self, double seconds) except -1

cdef class EmptyPrimitive:
    cdef Clock _clock
