# The types of switch.py when it is compiled, and the switch itself, by greenlet's C functions.

cimport cython
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
