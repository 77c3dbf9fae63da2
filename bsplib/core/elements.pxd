cimport cython
cimport numpy as cnp
from bsplib.core.atomics cimport (
    address_of, copy, itemsize_of, nbytes_of, peek, poke, prepare, word,
)

cpdef bint count_elements(cnp.ndarray pids, cnp.ndarray indices, cnp.ndarray numbers) except -1
@cython.locals(at=word, source=word, itemsize=word, pid=Py_ssize_t, ends=cnp.ndarray)
cpdef int deal_elements(
    cnp.ndarray pids, cnp.ndarray indices, cnp.ndarray values, list to_indices, list to_values
) except -1

@cython.locals(nprocs=word, highest=word, at=word, pid=word, index=word, number=word)
cdef bint _count(word pids, word indices, word nbytes, word numbers, word length) noexcept
@cython.locals(at=word, end=word, to_index=word, to_value=word)
cdef void _deal(
    word pids, word indices, word values, word nbytes, word itemsize, word ends
) noexcept
cdef void _copy_item(word to, word source, word itemsize) noexcept
