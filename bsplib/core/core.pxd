cimport cython
from bsplib.core.atomics cimport (
    address_of, base_of, bytes_at, copy, fits, is_array, is_of, is_packed, is_writable,
    length_of, nbytes_of, ndim_of, new_array, new_like, now_ns, owns_memory, packed, peek, poke, prepare,
    same_shape, small_integer, word, write_bytes, write_number,
)
from bsplib.core.box cimport (
    BYTE_MASK, HEAD_BYTES, IN_BOX, KIND_SHIFT, MESSAGE, MOST_SLOTS, ON_CARD, PUT,
    RECEIVER_SHIFT, SIZE_MASK, SLOT_SHIFT, STAGED_MESSAGE, STAGED_PUT, Box,
)
from bsplib.core.clock cimport Clock
from bsplib.core.lanes cimport Lane
from bsplib.core.log cimport Log
from bsplib.core.meeting cimport Meeting
from bsplib.core.queue cimport Queue
from bsplib.core.stack_keys cimport StackKeys

cdef word _MOST_SHARED, _MOST_PRIVATE, _MANY_PAGES, _KIND, _HAS_GET, _UNRESOLVED, _HAS_MESSAGES, _LOW, _CARD_ROOM
cdef Py_ssize_t _MOST_OFFSET, _OWN_FRAMES

cdef class Core:
    cdef public int _pid
    cdef public int _nprocs
    cdef public Meeting _meeting
    cdef public Box _box
    cdef word _most_in_box
    cdef public Py_ssize_t _superstep
    cdef public object _unusable
    cdef public bint _long
    cdef public bint _timed
    cdef public Clock _clock
    cdef public bint _recorded
    cdef public long long _comm_ns
    cdef public object _out
    cdef public dict _early
    cdef public list _changes
    cdef public list _unresolved
    cdef public dict _lanes
    cdef object _last_array
    cdef Lane _last_lane
    cdef Lane _lane
    cdef word[::1] _here
    cdef public list _quick_gets
    cdef public bint _gets_are_direct
    cdef public bint _long_gets
    cdef object _read
    cdef public Queue _queue
    cdef public object _tag_size
    cdef public bint _sends_messages
    cdef public dict _heads_out
    cdef public dict _heads_in
    cdef public dict _dtypes
    cdef public bint _counts, _has_counts
    cdef public Log _log
    cdef public StackKeys _stack_keys
    cdef public word[::1] _sent_bytes
    cdef public word[::1] _sent
    cdef public word[::1] _got_bytes
    cdef public word[::1] _got
    cdef public bint _has_early
    cdef public word[::1] _early_bytes
    cdef public word[::1] _early_puts
    cdef word[::1] _first
    cdef word[::1] _stop
    cdef bint _delivers
    cdef object _cards

    cdef long long _begin_call(self) except 0
    cdef long long _time_ns(self) noexcept
    cdef void _end_call(self, long long began) except *
    @cython.locals(lane=Lane)
    cdef bint _lane_of(self, object array) except -1
    cpdef void _forget_lanes(self) except *
    @cython.locals(lane=Lane, first=Py_ssize_t, alike=bint)
    cdef Py_ssize_t _first_byte(self, int to, object array, object values, object offset) except? -1
    @cython.locals(to=Py_ssize_t, start=Py_ssize_t, lane=Lane, first=word, nbytes=word)
    cdef bint _put_quickly(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(staged=Py_ssize_t, head=word)
    cdef bint _put_bytes(self, int to, Lane lane, word first, object values, word nbytes) except -1
    @cython.locals(head=word, at=word)
    cdef word _room(self, int to, Lane lane, word first, word nbytes) except 0
    cdef void _count(self, int to, word nbytes) noexcept
    @cython.locals(
        to=Py_ssize_t, start=Py_ssize_t, lane=Lane, first=word, nbytes=word, there=word,
    )
    cdef bint _hpput_quickly(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(
        sender=Py_ssize_t, start=Py_ssize_t, lane=Lane, first=word, nbytes=word, there=word,
    )
    cdef bint _get_quickly(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(there=word, nbytes=word, size=word, at=word)
    cdef void _read_gets(self) except *
    @cython.locals(nbytes=word, at=word)
    cdef void _write_gets(self) except *
    @cython.locals(to=Py_ssize_t, nbytes=word)
    cdef bint _send_quickly(self, object pid, object payload, object tag) except -1
    @cython.locals(size=word, padded=word, at=word)
    cdef word _message_room(self, int to, bytes head, word nbytes) except 0
    @cython.locals(size=word, padded=word, at=word)
    cpdef void _add_message(self, int to, bytes head, object content, word nbytes) except *
    @cython.locals(meeting=Meeting, box=Box, note=word, head=word, nothing_new=bint)
    cdef bint _sync_quickly(self, word stamp) except -1
    @cython.locals(
        log=Log, arrive=cython.longlong, end=cython.longlong, superstep=Py_ssize_t, stack=int,
    )
    cdef void _sync_recorded(self) except *
    @cython.locals(log=Log, pid=int, nbytes=word, messages=word)
    cdef void _log_counts(self) except *
    @cython.locals(
        meeting=Meeting, me=word, foreign=bint, held=word, any_card=bint, source=int, theirs=word,
        head=word, kind=word, first=word, chunk=word,
    )
    cdef void _deliver(self, word note) except *
    @cython.locals(at=word, source=int, nbytes=word)
    cdef void _keep_cards(self) except *
    @cython.locals(head=word, first=word, kind=word, nbytes=word, slot=word, here=word)
    cdef void _apply(self, int source, word at, word stop) except *
    cdef word _receive(self, int source, word kind, word at, word size, word nbytes) except 0
    cdef object _head_in(self, bytes encoded)
    cdef object _zeros(self)
    cpdef void _begin_counts(self) except *
    cdef void _begin_early(self) except *
    @cython.locals(pid=int)
    cpdef void _forget_counts(self) except *
    @cython.locals(nbytes=word, head=word)
    cpdef void _add_put(self, int to, word slot, word first, object values) except *
    @cython.locals(head=word)
    cpdef void _add_staged(self, int to, word slot, word first, word staged, word nbytes) except *
    @cython.locals(size=word)
    cpdef void _define(self, word slot, word address) except *
    @cython.locals(chunk=word)
    cdef list _records_at(self, word byte)
    @cython.locals(head=word, first=word, kind=word, nbytes=word, slot=word)
    cdef void _list(self, list records, word at, word stop) except *
    @cython.locals(head=word, kind=word, table=word, at=word)
    cpdef list _records_from(self, int source)
    cpdef list _own_records(self, int to)

cdef class Reading:
    cdef Core _group
    cdef Queue _queue
    cdef dict _dtypes
    cdef object _decoded(self, object message)
