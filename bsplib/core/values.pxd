cimport cython
from bsplib.core.atomics cimport (
    FLOAT, INTEGER, address_of, array_at, copied, copy, copy_out, fits, form_of, is_array, is_boolean, is_of, is_packed,
    is_writable, length_of, nbytes_of, ndim_of, new_array, number_in, owns_memory, prepare,
    same_shape, small_integer, this_thread, word, write_number,
)
from bsplib.core.clock cimport Clock
from bsplib.core.engine cimport Engine
from bsplib.core.queue cimport Queue

cdef word _NO_LENGTH
cdef dict _KINDS
cdef int _NUMPYS, _SUM, _PRODUCT, _LEAST, _GREATEST

cdef class Fold:
    cdef readonly object op, ufunc
    cdef readonly bint elementwise, counts, in_tree, keeps_dtype
    cdef int _code
    @cython.locals(count=Py_ssize_t, width=Py_ssize_t, first=Py_ssize_t, number=Py_ssize_t)
    cpdef object whole(self, list operands, object out)
    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, first=Py_ssize_t)
    cpdef object prefix(self, list operands, object own, object out)
    @cython.locals(code=int)
    cdef object _two(self, object left, object right, bint ours, object out)

cdef class Recipe:
    cdef readonly str operation
    cdef readonly Fold fold
    cdef readonly str shape
    cdef readonly bint cut
    cdef readonly tuple stages
    cdef readonly object tag, tag_of_piece

@cython.locals(at=word, there=word)
cpdef bint may_overlap(object one, object other) except -1

cdef class Values:
    cdef Engine _engine
    cdef Clock _clock
    cdef readonly Py_ssize_t began
    cdef readonly dict recipes
    cdef dict _float_heads, _integer_heads, _numpys_heads
    cdef int _last_form
    cdef word _last_length
    cdef object _last_tag, _last_head
    cdef word _sent_at
    cdef object _known_head, _known_operation, _known_header
    cdef int _known_kind
    cdef object _known_dtype, _known_shape
    cpdef void begin(self) noexcept
    @cython.locals(recipes=dict, recipe=Recipe)
    cpdef object recipe_of(self, str operation, object op, object x)
    @cython.locals(stages=tuple, unread=list, operands=list, is_last=bint)
    cpdef object combined(self, object bsp, Recipe recipe, object value, object out)
    cpdef object total(self, Recipe recipe, list operands, object out)
    cpdef object prefix(self, Recipe recipe, list operands, object own, object out)
    cdef bint _fits(self, Recipe recipe, list operands, object out) except -1
    @cython.locals(place=Py_ssize_t, is_copy=bint)
    cpdef list exchanged(self, object bsp, Recipe recipe, object stage, object value)
    @cython.locals(number=Py_ssize_t)
    cpdef object root_of(self, object bsp, str operation, object root)
    cpdef object give(
        self, object bsp, str operation, object receivers, object x
    )
    cpdef object owned(self, object given)
    cdef object _as_sent(self, object array)
    @cython.locals(number=int, to=int, pid=int, nprocs=int)
    cpdef object give_parts(self, object bsp, str operation, list parts, bint copies)
    cpdef object send_all(self, object bsp, object receivers, object value, object tag)
    cpdef object send_value(self, object bsp, int to, object value, object tag)
    @cython.locals(kind=int, to=int, heads=dict)
    cdef bint _send_all_quickly(self, object receivers, object value, object tag) except -1
    @cython.locals(
        nbytes=word, staged=Py_ssize_t, to=int, address=word, at=word,
    )
    cdef bint _send_array(self, object receivers, object value, object tag) except -1
    cdef bint _is_copied_there(self, object receivers, word nbytes) except -1
    @cython.locals(length=word, form=int)
    cdef object _head_of(self, object array, object tag)
    @cython.locals(values=list)
    cpdef list take(
        self, object bsp, str operation, Recipe recipe, object sources, Py_ssize_t place,
        object own, bint views
    )
    @cython.locals(
        queue=Queue, messages=list, count=Py_ssize_t, number=Py_ssize_t,
    )
    cdef list _take_quickly(
        self, str operation, object header, object sources, Py_ssize_t place, object own,
        bint views
    )
    @cython.locals(nprocs=int, pid=int)
    cpdef object places(self, object out)
    @cython.locals(count=Py_ssize_t, number=Py_ssize_t)
    cpdef bint fill(self, list targets, list values) except -1
    cdef bint _is_like(self, object target, object value) except -1
    @cython.locals(kind=int)
    cdef bint _knows(self, object head, str operation, object header) except -1
    @cython.locals(address=word, kind=int)
    cdef object _value_in(self, object content, bint views)
