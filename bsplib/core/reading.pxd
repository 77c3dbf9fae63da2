from bsplib.core.atomics cimport new_array, prepare, this_thread
from bsplib.core.queue cimport Queue
from bsplib.core.quick_state cimport QuickState

cdef class Reading:
    cdef QuickState _group
    cdef Queue _queue
    cdef dict _dtypes
    cdef object _decoded(self, object message)
