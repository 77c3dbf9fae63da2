# The types of virtual.py when it is compiled.

cimport cython

from bsplib.core.atomics cimport address_of, peek, prepare, word
from bsplib.core.entries cimport (
    BYTE_MASK, INLINE_BYTES, INLINE_SIZE_MASK, HEAD_BYTES, IN_BUFFER, KIND_SHIFT, INLINE, RECEIVER_SHIFT,
    add_amounts,
)
from bsplib.core.clock cimport Clock
from bsplib.core.meeting cimport Meeting
from cpython.ref cimport Py_DECREF, PyObject

cdef extern from "greenlet/greenlet.h":
    ctypedef struct PyGreenlet:
        pass
    void PyGreenlet_Import() except *
    object PyGreenlet_Switch(PyGreenlet *target, PyObject *args, PyObject *kwargs)
    PyGreenlet *PyGreenlet_GetCurrent() except NULL  # a new reference
    bint PyGreenlet_ACTIVE(PyGreenlet *target) noexcept


cdef inline int prepare_switch() except -1:
    PyGreenlet_Import()
    return 0


cdef inline object switch_to(object target):
    return PyGreenlet_Switch(<PyGreenlet *> <PyObject *> target, NULL, NULL)


cdef inline bint is_running(object target) except -1:
    cdef PyObject *current = <PyObject *> PyGreenlet_GetCurrent()
    Py_DECREF(<object> current)  # it stays alive as the current one
    return current == <PyObject *> target


cdef inline bint has_begun(object target) noexcept:
    return PyGreenlet_ACTIVE(<PyGreenlet *> <PyObject *> target)


cdef class Process:
    cdef readonly object greenlet
    cdef public str doing
    cdef public list left
    cpdef bint is_current(self) except -1


@cython.final
cdef class Rounds:
    cdef object _random, _hub
    cdef list _round, _next_round
    cdef public Process current
    cdef public bint is_over
    @cython.locals(following=Process)
    cpdef void wait(self, Process process, str doing) except *
    cpdef void wake(self, list processes) except *
    cdef void _begin_round(self) except *

cdef word HAS_GET, KIND_BITS, _FLAGS, _END
cdef int _IN, _OUT
cdef int _FLAG_BITS

@cython.final
cdef class Gathering:
    cdef readonly int nprocs
    cdef long long _nothing_ns
    cdef int _came
    cdef word _mark
    cdef bint _alike, _together
    cdef long long _latest_ns
    cdef list _waiting
    cdef dict _gets
    cdef bint _nothing_new, _was_together
    cdef long long _released_ns, _end_ns
    cdef word[::1] _marks, _heads
    cdef object _inline_memory
    cdef word _inline

cdef class VirtualMeeting(Meeting):
    cdef public bint looks_back, is_before_main
    cdef int _pid
    cdef Gathering _gathering
    cdef word[::1] _amounts
    cdef Process _process
    cdef Clock _clock
    cdef Rounds _rounds
    cdef object _owner
    cdef str _place
    cdef int _parity, _cells
    cdef bint _is_first
    @cython.locals(gathering=Gathering, process=Process, ends=bint)
    cpdef bint meet(self, word flags, word head, word stamp) except -1
    @cython.locals(mark=word, place=int, now_ns=cython.longlong)
    cdef void _post(self, Gathering gathering, word flags, word head) noexcept
    @cython.locals(waiting=list)
    cdef void _complete(self, Gathering gathering) except *
    cdef long long _price(self, Gathering gathering) except -1
    cdef void _go_on(self, Gathering gathering) noexcept
    @cython.locals(place=int)
    cpdef word inline_address(self) except? 0
    cpdef word head_of(self, int pid) noexcept
    cpdef word inline_of(self, int pid) noexcept
    cpdef word flags_of(self, int pid) noexcept
    cpdef word superstep_of(self, int pid) noexcept
    cpdef void end_superstep(self) noexcept
    @cython.locals(caller=int, to=int, kind=word, head=word, entry=word)
    cpdef list transfers(self)
    @cython.locals(to=int, chunk=word, stop=word)
    cdef void _add_send_buffer(self, list found, int caller, word table) except *
    @cython.locals(nbytes=word, count=word)
    cdef void _take_amounts(self, list found, int caller, int to) except *
