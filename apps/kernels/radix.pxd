cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport address_of, copy, peek, poke, prepare, word

cdef int _UNSIGNED, _SIGNED, _FLOAT, _FIRST
cdef word _SIGN, _ALL, _INFINITY, _TABLE, _MANY, _FEW

cpdef bint can_sort(object dtype) except -1
@cython.locals(count=word, kind=int, room=cnp.ndarray, tables=cnp.ndarray)
cpdef void sort_numbers(cnp.ndarray numbers, cnp.ndarray out) except *

cdef void _sort(
    word source, word other, word count, int digit, bint to_other, word tables
) noexcept
@cython.locals(table=word, at=word, entry=word, begin=word, end=word, place=word)
cdef void _sort_many(
    word source, word other, word count, int digit, bint to_other, word tables
) noexcept
@cython.locals(at=word, key=word, table=word, entry=word, is_there=bint, number=int)
cdef void _sort_few(
    word source, word other, word count, int digit, bint to_other, word tables
) noexcept
@cython.locals(at=word, key=word, place=word)
cdef void _insert(word source, word count) noexcept
@cython.locals(at=word)
cdef void _clear(word begin, word end) noexcept
@cython.locals(entry=word)
cdef bint _differs(word table, word count) noexcept
@cython.locals(place=word, entry=word, many=word, at=word, key=word)
cdef void _distribute(word source, word to, word count, word table, int shift) noexcept
@cython.locals(at=word, bits=word)
cdef void _read(word numbers, word keys, word count, int kind) noexcept
@cython.locals(at=word, key=word)
cdef void _write(word keys, word count, int kind) noexcept
