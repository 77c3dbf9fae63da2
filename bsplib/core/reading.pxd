from bsplib.core.atomics cimport new_array, prepare, this_thread
from bsplib.core.queue cimport Queue
from bsplib.core.engine cimport Engine

cdef dict DTYPES

cdef class Reading:
    cdef Engine _engine
    cdef object _bsp
    cdef Queue _queue
    cdef object _decoded(self, object message)
