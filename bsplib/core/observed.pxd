cimport cython
from bsplib.core.atomics cimport now_ns, prepare, this_thread, word
from bsplib.core.clock cimport Clock
from bsplib.core.engine cimport Engine
from bsplib.core.log cimport Traffic

cdef word _SYNC, _OBLSYNC

cdef class EngineObserver:
    cpdef long long meet(self, ObservedEngine engine) except -1
    cpdef void arrived(self, ObservedEngine engine) except *
    cpdef int delivered(self, ObservedEngine engine, int kind, Py_ssize_t superstep) except -1
    cpdef void leave(self, ObservedEngine engine) except *
    cpdef void left(self, ObservedEngine engine) except *

cdef class ObservedEngine(Engine):
    cdef readonly Clock clock
    cdef Traffic _traffic
    cdef EngineObserver _recorder
    cdef EngineObserver _checker
    cdef public long long comm_ns

    cpdef void observe(
        self, Clock clock, Traffic traffic, EngineObserver recorder, EngineObserver checker
    ) except *
    cpdef long long begin_call(self) except? -1
    cpdef int end_call(self, long long began) except -1
    @cython.locals(began=cython.longlong)
    cdef int put(self, object bsp, object pid, object src, object dst, object offset, object at) except -1
    @cython.locals(began=cython.longlong)
    cdef int hpput(self, object bsp, object pid, object src, object dst, object offset, object at) except -1
    @cython.locals(began=cython.longlong, before=Py_ssize_t)
    cdef object get(
        self, object bsp, object pid, object src, object dst, object offset, object at, object count
    )
    @cython.locals(began=cython.longlong, before=Py_ssize_t)
    cdef object hpget(
        self, object bsp, object pid, object src, object dst, object offset, object at, object count
    )
    @cython.locals(began=cython.longlong)
    cdef int put_at(
        self, object bsp, object pids, object indices, object values, object dst, object op
    ) except -1
    @cython.locals(began=cython.longlong, before=Py_ssize_t)
    cdef object get_at(self, object bsp, object pids, object indices, object src, object out)
    @cython.locals(began=cython.longlong)
    cdef int send(self, object bsp, object pid, object payload, object tag) except -1
    @cython.locals(began=cython.longlong)
    cdef object messages(self, object bsp)
    @cython.locals(began=cython.longlong)
    cdef object move(self, object bsp)
    @cython.locals(began=cython.longlong)
    cdef object hpmove(self, object bsp)
    @cython.locals(number=Py_ssize_t, get=tuple)
    cdef int _count_gets(self, Py_ssize_t before) except -1
    @cython.locals(at=word)
    cdef word _reserve(self, int to, word slot, word first, word nbytes) except 0
    @cython.locals(at=word)
    cdef word _reserve_strided(self, int to, word slot, word size, word nbytes) except 0
    cpdef void add_staged(self, int to, word slot, word first, word staged, word nbytes) except *
    @cython.locals(at=word)
    cdef word message_room(self, int to, bytes head, word nbytes) except 0
    cpdef void add_message(self, int to, bytes head, object content, word nbytes) except *
    cdef int count_early(self, int to, word nbytes) except -1
    @cython.locals(clock=Clock)
    cdef int sync(self, object bsp) except -1
    @cython.locals(clock=Clock, superstep=Py_ssize_t, stamp=word)
    cdef int oblsync(self, object bsp, object n) except -1
    @cython.locals(superstep=Py_ssize_t)
    cpdef int end(self, object bsp, word kind, word stamp) except -1
    @cython.locals(stamp=word)
    cdef word _arrive(self) except? 0
    cdef int _distribute(self, word held) except -1
    cdef int _delivered(self, int kind, Py_ssize_t superstep) except -1
    cpdef void leave(self) except *
    cpdef void left(self) except *

cdef long long _begin(ObservedEngine engine) except? -1
cdef int _end(ObservedEngine engine, long long began) except -1
@cython.locals(traffic=Traffic)
cdef int _count(ObservedEngine engine, int to, word nbytes) except -1
