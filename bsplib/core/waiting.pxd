cimport cython
from bsplib.core.atomics cimport (
    compiler_fence, full_fence, give_way, load, now_ns, peek, poke, relax, store, wake_up, word,
)

cdef class Waiter:
    cdef public word waited
    cdef word[::1] _asleep
    cdef word[::1] _futexes
    cdef int _count
    cdef bint _posts_need_fence
    cdef object _move
    cdef int _most_spins
    cdef int _spins
    cdef int _most_yields
    cdef public int patience
    cdef public bint lost_core
    cdef bint _keeps_core
    cdef int _waits_to_trial
    cdef int _trial
    @cython.locals(_look=int)
    cpdef bint arrives(self, word address, word floor) except -1
    @cython.locals(began=cython.longlong, found=bint, _look=int)
    cdef bint _give_way_until(self, word address, word floor) except -1
    cpdef int spins_this_time(self) noexcept
    cpdef void spun_well(self) noexcept
    cpdef void give_up_spinning(self) except *
    cpdef void be_patient(self) noexcept
    cpdef void be_impatient(self, bint gives_way) noexcept
    cpdef void posted(self) noexcept
    @cython.locals(pid=int)
    cpdef void wake(self) noexcept
