cimport cython
from bsplib.core.atomics cimport (
    address_of, base_of, copy, dtype_id, fill_new, fits, is_array, is_of, is_packed, is_writable, length_of,
    nbytes_of, ndim_of, new_like, owns_memory, packed, poke, prepare, same_shape, small_integer, this_thread, word,
    write_bytes, write_number,
)
from bsplib.core.send_buffer cimport (
    SendBuffer, KIND_SHIFT, MOST_SLOTS, SLOT_SHIFT,
)
from bsplib.core.strided cimport StridedView
from bsplib.core.known_arrays cimport KnownArray
from bsplib.core.engine_state cimport EngineState

cdef word INDICES_SHIFT, STRIDED, PUT, STAGED_PUT, MESSAGE, STAGED_MESSAGE

cdef word _MANY_PAGES
cdef Py_ssize_t _MOST_OFFSET

cdef class Collecting(EngineState):
    @cython.locals(known=KnownArray)
    cdef bint _find_known(self, object array) except -1
    @cython.locals(to=Py_ssize_t, first=Py_ssize_t, known=KnownArray, nbytes=word)
    cdef Py_ssize_t _first_byte(self, object pid, object array, object values, object offset) except? -1
    @cython.locals(known=KnownArray)
    cdef Py_ssize_t _first_of_whole(self, Py_ssize_t to, object values) except? -1
    @cython.locals(known=KnownArray)
    cdef Py_ssize_t _first_of_view(self, object view, object values, object offset) except? -1
    @cython.locals(first=Py_ssize_t, known=KnownArray, to=int, start=word, is_known=bint)
    cdef word _address_there(
        self, object pid, object array, object values, object offset, bint writes
    ) except? 0
    @cython.locals(start=word)
    cdef word _start_there(self, int to) except? 0
    @cython.locals(to=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, known=KnownArray, nbytes=word, at=word)
    cdef bint _put_list(self, object pid, list src, object dst, object offset) except -1
    @cython.locals(first=Py_ssize_t, known=KnownArray)
    cdef Py_ssize_t _first_of_list(
        self, Py_ssize_t to, Py_ssize_t count, object dst, object offset
    ) except? -1
    @cython.locals(to=int, size=word, known=KnownArray, nbytes=word, at=word)
    cdef bint _put_strided(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(to=Py_ssize_t, known=KnownArray, size=word)
    cdef word _strided_on(self, object pid, object view, object values, object offset) except? 0
    cdef object _view_at(self, object array, object at)
    @cython.locals(first=Py_ssize_t)
    cdef bint _put_quickly(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(first=word, nbytes=word, to=int, there=word)
    cdef bint _hpput_quickly(self, object pid, object src, object dst, object offset) except -1
    @cython.locals(nbytes=word, slot=word, to=int, staged=Py_ssize_t)
    cdef bint _put_bytes(self, word first, object values) except -1
    cdef bint buffer_takes(self, word nbytes) except -1
    @cython.locals(head=word)
    cdef word _reserve_strided(self, int to, word slot, word size, word nbytes) except 0
    cdef word _reserve(self, int to, word slot, word first, word nbytes) except 0
    @cython.locals(head=word)
    cpdef void add_staged(self, int to, word slot, word first, word staged, word nbytes) except *
    @cython.locals(nbytes=word)
    cpdef void add_put(self, int to, word slot, word first, object values) except *
    cdef object _get_into(
        self, object pid, object src, object dst, object offset, bint at_any_time
    )
    @cython.locals(nbytes=word, sender=int, there=word, size=word)
    cdef bint _get_quickly(
        self, object pid, object src, object dst, object offset, bint at_any_time
    ) except -1
    cdef bint _hpgets_at_sync(self) except -1
    @cython.locals(to=Py_ssize_t, nbytes=word)
    cdef bint send_quickly(self, object pid, object payload, object tag) except -1
    cdef bint _takes_payload(self, word nbytes, object tag) except -1
    cdef word message_room(self, int to, bytes head, word nbytes) except 0
    cpdef void add_message(self, int to, bytes head, object content, word nbytes) except *
    @cython.locals(nbytes=word, at=word)
    cpdef void describe(
        self, SendBuffer send_buffer, int to, word kind, bytes description, word indices, object data
    ) except *
    cpdef void describe_staged(
        self, SendBuffer send_buffer, int to, word kind, bytes description, word indices, word where, word nbytes
    ) except *
    @cython.locals(size=word, padded=word, first=word, at=word)
    cdef word _reserve_described(
        self, SendBuffer send_buffer, int to, word kind, bytes description, word indices, word nbytes, word behind
    ) except 0
    cpdef void add_ask(self, int sender, word nbytes, object pending) except *
