cimport cython
from bsplib.core.atomics cimport (
    bit_length, compiler_fence, full_fence, give_way, load, now_ns, peek, poke, relax, store, wake_up, word,
    wrapped,
)

cdef word _STAMP, _HEAD, _BEHIND_HEAD, _SUPERSTEP_SHIFT, _MEETING_SHIFT, _NEXT_MEETING
cdef word _AREA_SHIFT, _CHUNK_SHIFT, _AREA_MASK, _WINDOWS, _BYTES_PER_NS

cdef class Meeting:
    cdef public bint shares_memory, has_staged
    cdef public word superstep, released
    cdef readonly list gets
    cpdef word address_of(self, word byte) except? 0
    cpdef bint has_delivered(self, int pid) except -1
    cpdef bint waits_for_delivery(self, int pid, word nbytes) except -1
    cpdef bint meet(self, word flags, word head, word stamp) except -1
    cpdef word inline_address(self) except? 0
    cpdef word head_of(self, int pid) noexcept
    cpdef word inline_of(self, int pid) noexcept
    cpdef word size_of(self, int pid) noexcept
    cpdef word flags_of(self, int pid) noexcept
    cpdef void end_superstep(self) noexcept

cdef class Pause:
    cdef public int waits
    cpdef void begin(self) noexcept

cdef class Waiter:
    cdef public word waited
    cdef readonly Pause pause
    cdef word[::1] _asleep, _futexes
    cdef int _count
    cdef bint _keeps_core, _posts_need_fence
    cdef object _move
    cdef int _spins, _yields, _in_vain
    @cython.locals(_look=int)
    cpdef bint arrives(self, word address, word floor) except -1
    cdef int _spun_in_vain(self) except -1
    @cython.locals(began=cython.longlong, found=bint, _look=int)
    cdef bint _give_way_until(self, word address, word floor) except -1
    cpdef void posted(self) noexcept
    @cython.locals(pid=int)
    cpdef void wake(self) noexcept

cdef class SharedMeeting(Meeting):
    cdef public bint has_to_prepare
    cdef public word oblivious
    cdef public list leases, left_over
    cdef int _pid, _nprocs
    cdef object _owner
    cdef Waiter _waiter
    cdef bint _knows_others
    cdef int _parity
    cdef word _floor
    cdef int _cells
    cdef word[::1] _places, _bases
    @cython.locals(area=word, number=word, base=word, found=word)
    cpdef word address_of(self, word byte) except? 0
    @cython.locals(last=word, delivered=word)
    cpdef bint has_delivered(self, int pid) except -1
    @cython.locals(deadline=cython.longlong)
    cpdef bint waits_for_delivery(self, int pid, word nbytes) except -1
    @cython.locals(
        nprocs=int, first=int, mine=word, floor=word, mark=word, nothing_new=bint, pid=int,
        seen=word,
    )
    cpdef bint meet(self, word flags, word head, word stamp) except -1
    cdef word _await(self, int pid, word cell, word floor) except? 0
    @cython.locals(pid=int, other=word)
    cdef word _latest(self, word stamp) noexcept
    cpdef word inline_address(self) except? 0
    @cython.locals(cell=word)
    cpdef word head_of(self, int pid) noexcept
    cpdef word inline_of(self, int pid) noexcept
    cpdef word flags_of(self, int pid) noexcept
    cpdef void end_superstep(self) noexcept
