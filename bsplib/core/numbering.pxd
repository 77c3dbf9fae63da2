cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport address_of, peek, poke, prepare, word, wrapped

cdef word _MIXER

@cython.locals(
    count=word, width=word, slots=word, numbers=cnp.ndarray, firsts=cnp.ndarray, more=cnp.ndarray,
    table=cnp.ndarray, larger=cnp.ndarray, state=cnp.ndarray,
)
cpdef tuple number_keys(cnp.ndarray keys)

@cython.locals(row=word, known=word, most=word, key=word, tag=word, slot=word, number=word)
cdef void _number(
    word keys, word width, word count, word table, word mask, word firsts, word numbers, word state
) noexcept
@cython.locals(at=word, number=word, tag=word, slot=word)
cdef void _move_slots(word table, word slots, word to, word mask) noexcept
@cython.locals(tag=word, position=word)
cdef word _mixed(word key, word width) noexcept
cdef word _mixed_word(word value) noexcept
@cython.locals(position=word)
cdef bint _same(word one, word other, word width) noexcept
