from bsplib.core.engine cimport Engine

cdef class Calls:
    cdef readonly Engine _engine
