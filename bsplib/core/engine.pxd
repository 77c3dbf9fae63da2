cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport (
    address_of, base_of, copied, copy, copy_out, fill_new, fits, form_of, is_array, is_of, is_packed, is_writable,
    length_of, nbytes_of, ndim_of, new_array, new_like, now_ns, owns_memory, packed, peek, poke, prepare, same_form, same_shape,
    small_integer, this_thread, word, write_bytes, write_number,
)
from bsplib.core.entries cimport (
    MOST_HEADS, KIND_SHIFT, MESSAGE, MOST_SLOTS, PUT, SLOT_SHIFT, STAGED_MESSAGE, STAGED_PUT, STRIDED, Arrivals, SendBuffer,
    entries_at,
)
from bsplib.core.clock cimport Clock
from bsplib.core.known_arrays cimport DENSE_BYTES, KnownArray, gather
from bsplib.core.meeting cimport Meeting
from bsplib.core.observed cimport RecordingObserver, Traffic
from bsplib.core.queue cimport Queue

cdef word HAS_ASKS, HAS_GET, HAS_NOTICE, UNRESOLVED, _SYNC
cdef int _OBLSYNC, _END, _OUT, _IN
cdef word _MOST_SHARED, _MOST_PRIVATE
cdef int RESTING, USABLE
cdef Py_ssize_t _MOST_OFFSET
cdef dict DTYPES

@cython.final
cdef class Engine:
    cdef readonly int pid, nprocs
    cdef readonly word thread, quick
    cdef word _quick_if_usable
    cdef readonly int life
    cdef bint is_observed
    cdef readonly Clock clock
    cdef RecordingObserver _recorder
    cdef Traffic _traffic
    cdef object _checker
    cdef readonly long long comm_ns, pickling_ns, pickled_bytes
    cdef int _inside
    cdef long long _since_ns
    cdef bint _is_open
    cdef readonly Meeting meeting
    cdef readonly SendBuffer send_buffer
    cdef readonly Arrivals arrivals
    cdef readonly Queue queue
    cdef object slow_path, staging
    cdef word most_in_buffer
    cdef readonly Py_ssize_t superstep
    cdef readonly object unusable
    cdef readonly list changes, unresolved
    cdef readonly dict known_arrays
    cdef object _last_array
    cdef KnownArray _known
    cdef int _to
    cdef word _nbytes
    cdef readonly list gets
    cdef readonly bint asks
    cdef public SendBuffer replies
    cdef readonly bint gets_are_direct
    cdef object _read
    cdef readonly dict heads_out
    cdef readonly bint has_early
    cdef readonly word[::1] early_puts

    cdef void _declare_transfers(self) except *

    cdef int put(
        self, object bsp, object pid, object src, object dst, object offset, object at, bint at_any_time
    ) except -1
    cdef object get(
        self, object bsp, object pid, object src, object dst, object offset, object at, object count,
        bint at_any_time,
    )
    cdef int put_at(
        self, object bsp, object pids, object indices, object values, object dst, object op
    ) except -1
    cdef object get_at(self, object bsp, object pids, object indices, object src, object out)
    cdef int send(self, object bsp, object pid, object payload, object tag) except -1
    cdef object messages(self, object bsp)
    cdef object move(self, object bsp)
    cdef object hpmove(self, object bsp)
    cdef int sync(self, object bsp) except -1
    @cython.locals(superstep=Py_ssize_t, stamp=word)
    cdef int oblsync(self, object bsp, object n) except -1

    @cython.locals(known=KnownArray)
    cdef bint _find_known(self, object array) except -1
    @cython.locals(to=Py_ssize_t, first=Py_ssize_t, known=KnownArray, nbytes=word)
    cdef Py_ssize_t _first_byte(self, object pid, object array, object values, object offset) except? -1
    @cython.locals(known=KnownArray)
    cdef Py_ssize_t _first_of_whole(self, Py_ssize_t to, object values) except? -1
    @cython.locals(known=KnownArray)
    cdef Py_ssize_t _first_of_view(self, object view, object values, object offset) except? -1
    @cython.locals(to=Py_ssize_t, known=KnownArray, size=word)
    cdef word _strided_on(self, object pid, object view, object values, object offset) except? 0
    cdef object _place(self, object array, object offset, object at)
    @cython.locals(first=Py_ssize_t, start=word)
    cdef word _address_there(self, object pid, object array, object values, object offset) except? 0
    @cython.locals(start=word)
    cdef word _start_there(self, int to) except? 0

    @cython.locals(first=Py_ssize_t, there=word)
    cpdef bint put_quickly(
        self, object pid, object src, object dst, object offset, bint at_any_time
    ) except -1
    @cython.locals(to=int, size=word, known=KnownArray, nbytes=word, at=word)
    cdef bint _put_strided(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(nbytes=word, slot=word, to=int, staged=Py_ssize_t, at=word)
    cdef bint _put_bytes(self, word first, object values) except -1
    cdef bint buffer_takes(self, word nbytes) except -1
    @cython.locals(head=word, at=word)
    cdef word _reserve(self, word kind, int to, word slot, word first, word nbytes, word behind) except 0
    cpdef void add_staged(self, int to, word slot, word first, word staged, word nbytes) except *
    @cython.locals(nbytes=word)
    cpdef void add_put(self, int to, word slot, word first, object values) except *
    cdef int _count_early(self) except -1

    @cython.locals(nbytes=word, sender=int, there=word, size=word)
    cpdef bint get_quickly(
        self, object pid, object src, object dst, object offset, bint at_any_time
    ) except -1
    cpdef void add_ask(self, int sender, word nbytes, object pending) except *

    @cython.locals(to=Py_ssize_t, nbytes=word, at=word, form=int)
    cdef bint send_quickly(self, object pid, object payload, object tag) except -1
    cpdef int remember_head(self, object key, bytes head) except -1
    cdef bint _takes_payload(self, word nbytes) except -1
    @cython.locals(at=word)
    cdef word message_room(self, int to, bytes head, word nbytes) except 0
    cpdef void add_message(self, int to, bytes head, object content, word nbytes) except *

    @cython.locals(meeting=Meeting, send_buffer=SendBuffer, flags=word, head=word, nothing_new=bint, lasts=bint,
        superstep=Py_ssize_t, stamp=word)
    cpdef int end(self, object bsp, word kind) except -1
    @cython.locals(pid=int)
    cpdef int next_superstep(self) except -1
    @cython.locals(arrivals=Arrivals, all_flags=word)
    cdef int _deliver(self, word flags) except -1
    @cython.locals(head=word)
    cdef int _exchange_gets(self, word all_flags) except -1
    @cython.locals(there=word, nbytes=word, size=word, at=word)
    cdef void _read_gets(self) except *
    @cython.locals(there=word, nbytes=word, at=word)
    cdef void _write_gets(self) except *

    cpdef list own_entries(self, int to)

    cpdef void suspend(self, int life, str reason) except *
    cpdef void resume(self) noexcept
    cpdef bint is_usable(self) noexcept
    cpdef void forget_known_arrays(self) except *

    cpdef void observe(self, Clock clock, RecordingObserver recorder, object checker) except *
    cpdef int begin_call(self) except -1
    cpdef int end_call(self) except -1
    @cython.locals(now=cython.longlong)
    cpdef int begin_computing(self) except -1
    cpdef int end_computing(self) except -1
    cdef int _stop_clock(self) except -1
    cdef int _run_clock(self) except -1
    @cython.locals(began_ns=cython.longlong)
    cpdef bytes dumps(self, object value, object take_buffer=*)
    @cython.locals(began_ns=cython.longlong)
    cpdef object loads(self, object data, object buffers=*)
    @cython.locals(traffic=Traffic)
    cdef int _count(self, int direction, int partner, word nbytes) except -1
    @cython.locals(stamp=word)
    cdef word _arrive(self) except? 1
    cdef int _delivered(self, int kind, Py_ssize_t superstep) except -1
    cdef int _write_record(self) except -1
    cpdef void leave(self) except *
    cpdef void left(self) except *

cdef class Reading:
    cdef Engine _engine
    cdef object _bsp
    cdef Queue _queue
    cdef object _decoded(self, object message)

cdef object _array_of(list values)
cdef void _read(word at, word there, word nbytes, cnp.ndarray strided) noexcept
