cimport cython
from bsplib.core.atomics cimport now_ns, prepare, word
from bsplib.core.clock cimport Clock
from bsplib.core.log cimport Log
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.string cimport memcmp

cdef extern from *:
    """
    #include <stdint.h>

    typedef struct {
        uintptr_t code;
        intptr_t instruction;
    } bsp_call;

    /* Write the calls from the frame at this depth up to the code "outermost", and return how
       many there are; at most "most" are written. -1 and an exception: there is no memory. */
    static Py_ssize_t bsp_calls(
        bsp_call *calls, Py_ssize_t most, Py_ssize_t depth, PyObject *outermost
    ) {
        PyFrameObject *frame = PyEval_GetFrame(), *back;
        PyObject *code;
        Py_ssize_t count = -depth;
        Py_XINCREF(frame);
        for (; frame != NULL; frame = back, count++) {
            code = (PyObject *) PyFrame_GetCode(frame);
            Py_DECREF(code); /* the frame holds it */
            if (code == outermost) {
                Py_DECREF(frame);
                return count < 0 ? 0 : count;
            }
            if (count >= 0 && count < most) {
                calls[count].code = (uintptr_t) code;
                calls[count].instruction = PyFrame_GetLasti(frame);
            }
            back = PyFrame_GetBack(frame);
            Py_DECREF(frame);
        }
        if (PyErr_Occurred()) return -1;
        return count < 0 ? 0 : count;
    }

    static inline uint64_t bsp_hash(const bsp_call *calls, Py_ssize_t count) {
        uint64_t hash = 0;
        for (Py_ssize_t i = 0; i < count; i++) {
            hash = (hash ^ calls[i].code) * 0x9E3779B97F4A7C15u;
            hash = (hash ^ calls[i].instruction ^ hash >> 32) * 0x9E3779B97F4A7C15u;
        }
        return hash >> 32;
    }
    """
    ctypedef struct Call "bsp_call":
        pass
    Py_ssize_t bsp_calls(Call *calls, Py_ssize_t most, Py_ssize_t depth, PyObject *outermost) \
        except -1
    unsigned int bsp_hash(const Call *calls, Py_ssize_t count) noexcept

cdef extern from "Python.h":
    PyObject *PyList_GET_ITEM(list items, Py_ssize_t position) noexcept  # borrowed

cdef enum:
    CALLS_WITHOUT_HEAP = 128  # a deeper stack needs memory from the heap
    RECENT = 64

cdef word _SYNC
cdef int _END, _DIRECTIONS
cdef Py_ssize_t _OWN

@cython.final
cdef class StackKeys:
    cdef object _outermost, _define
    cdef dict _numbers, _codes
    # The key that was found last of all whose hash gives the same place, and its number: a
    # look into the dictionary, for which a key has to be made, takes three times as long.
    cdef list _recent
    cdef int _recent_numbers[RECENT]

    cpdef int number(self, Py_ssize_t depth=*) except -1
    cdef int _number_new(self, Py_ssize_t depth) except -1


cdef inline bytes key_of(StackKeys keys, Py_ssize_t depth):
    cdef PyObject *outermost = <PyObject *> keys._outermost
    cdef Py_ssize_t count = bsp_calls(NULL, 0, depth, outermost)
    key = PyBytes_FromStringAndSize(NULL, count * <Py_ssize_t> sizeof(Call))
    bsp_calls(<Call *> PyBytes_AS_STRING(key), count, depth, outermost)
    return key

cdef inline bint is_key(PyObject *key, const Call *calls, Py_ssize_t nbytes) noexcept:
    return (
        key != <PyObject *> None
        and PyBytes_GET_SIZE(<object> key) == nbytes
        and memcmp(PyBytes_AS_STRING(<object> key), calls, nbytes) == 0
    )

cdef inline int known_number(StackKeys keys, Py_ssize_t depth) except -2:
    cdef Call calls[CALLS_WITHOUT_HEAP]
    cdef Py_ssize_t count = bsp_calls(
        calls, CALLS_WITHOUT_HEAP, depth, <PyObject *> keys._outermost
    )
    cdef Py_ssize_t nbytes = count * <Py_ssize_t> sizeof(Call)
    if count > CALLS_WITHOUT_HEAP:
        return keys._numbers.get(key_of(keys, depth), -1)
    cdef Py_ssize_t place = bsp_hash(calls, count) % RECENT
    cdef PyObject *recent = PyList_GET_ITEM(keys._recent, place)
    if is_key(recent, calls, nbytes):
        return keys._recent_numbers[place]
    cdef bytes key = PyBytes_FromStringAndSize(<char *> calls, nbytes)
    cdef int number = keys._numbers.get(key, -1)
    if number >= 0:
        keys._recent[place], keys._recent_numbers[place] = key, number
    return number

@cython.final
cdef class Traffic:
    cdef int _nprocs
    cdef bint _is_empty
    cdef word[::1] _directions, _bytes, _count
    @cython.locals(place=Py_ssize_t)
    cpdef int add(self, int direction, int partner, word nbytes, word count) except -1
    @cython.locals(pid=int, directions=word, first=int, place=int)
    cpdef int write(self, Log log) except -1

@cython.final
cdef class RecordingObserver:
    cdef readonly Log log
    cdef Log _above
    cdef Clock _clock
    cdef readonly Traffic traffic
    cdef StackKeys _stack_keys
    cdef object _stack_of_end, _overflow
    cdef Py_ssize_t _superstep
    cdef int _kind, _stack
    cdef long long _arrive, _released, _end

    cdef long long _now(self) noexcept
    cpdef word meet(self, long long comm_ns) except? 1
    cpdef int delivered(self, Py_ssize_t superstep, int kind, long long released) except -1
    cpdef int extend(self) except -1
    @cython.locals(log=Log, now=cython.longlong)
    cpdef int write_record(
        self, long long comm_ns, long long pickling_ns, long long pickled_bytes
    ) except -1
    cpdef int left(
        self, Py_ssize_t superstep, long long comm_ns, long long pickling_ns,
        long long pickled_bytes,
    ) except -1
