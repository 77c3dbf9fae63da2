cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport address_of, peek, poke, prepare, word, wrapped

cdef word _FIRST_SLOTS, _GROWTH, _MIXER

@cython.final
cdef class KeyNumbers:
    cdef readonly Py_ssize_t count
    cdef word _mask
    cdef dict _known
    cdef cnp.ndarray _table, _keys, _state

    cpdef object keys(self)
    cpdef object number(self, cnp.ndarray keys)
    cpdef object find(self, cnp.ndarray keys)
    @cython.locals(rows=word, numbers=cnp.ndarray, state=word)
    cdef object _numbers_of(self, cnp.ndarray keys, bint is_new)
    @cython.locals(before=word, slots=word, table=cnp.ndarray, keys=cnp.ndarray)
    cdef int _grow(self) except -1

@cython.locals(
    row=word, count=word, end=word, tag=word, slot=word, number=word
)
cdef void _number(
    word keys, word rows, word table, word mask, word known, word numbers, word state,
    bint is_new,
) noexcept
@cython.locals(at=word, number=word, tag=word, slot=word)
cdef void _move_slots(word table, word slots, word to, word mask) noexcept
cdef word _mixed_word(word value) noexcept
