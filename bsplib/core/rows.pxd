# The types of rows.py when it is compiled.
cimport cython

from bsplib.core.atomics cimport store, word

cdef extern from *:
    """
    #include <stdint.h>
    #if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "rows are little-endian"
    #endif
    #pragma pack(push, 1)
    typedef struct {
        int32_t pid, group;
        int64_t superstep;
        uint8_t kind;
        int32_t stack;
        int64_t start, arrive, released, end, comm_calls, sub, self_bytes, self_messages;
        int64_t comp_cpu, comp_ready, comm_cpu, comm_ready;
        int64_t comp_minor, comp_major, comm_minor, comm_major, recording;
    } bsp_superstep;
    typedef struct {
        int64_t record;
        int32_t partner;
        uint8_t direction;
        int64_t bytes, messages;
    } bsp_traffic;
    #pragma pack(pop)
    """
    ctypedef struct Superstep "bsp_superstep":
        int pid, group
        long long superstep
        unsigned char kind
        int stack
        long long start, arrive, released, end, comm_calls, sub, self_bytes, self_messages
        long long comp_cpu, comp_ready, comm_cpu, comm_ready
        long long comp_minor, comp_major, comm_minor, comm_major, recording

    ctypedef struct Traffic "bsp_traffic":
        long long record
        int partner
        unsigned char direction
        long long bytes, messages

cdef extern from "Python.h":
    int PyObject_GetBuffer(object exporter, Py_buffer *view, int flags) except -1
    void PyBuffer_Release(Py_buffer *view)
    int PyBUF_WRITABLE


cdef inline word start_of(object memory) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
    cdef word start = <word> <size_t> view.buf
    PyBuffer_Release(&view)  # a mapped file with a view could not be closed
    return start

cdef inline void pack_superstep(
    word start, Py_ssize_t offset, int pid, int group, long long superstep,
    unsigned char kind, int stack, long long start_ns, long long arrive, long long released,
    long long end, long long comm_calls, long long sub, long long self_bytes,
    long long self_messages, long long comp_cpu, long long comp_ready, long long comm_cpu,
    long long comm_ready, long long comp_minor, long long comp_major, long long comm_minor,
    long long comm_major, long long recording,
) noexcept:
    cdef Superstep *row = <Superstep *> <size_t> (start + <word> offset)
    row.pid, row.group, row.superstep, row.kind, row.stack = pid, group, superstep, kind, stack
    row.start, row.arrive, row.released, row.end = start_ns, arrive, released, end
    row.comm_calls, row.sub = comm_calls, sub
    row.self_bytes, row.self_messages = self_bytes, self_messages
    row.comp_cpu, row.comp_ready = comp_cpu, comp_ready
    row.comm_cpu, row.comm_ready = comm_cpu, comm_ready
    row.comp_minor, row.comp_major = comp_minor, comp_major
    row.comm_minor, row.comm_major = comm_minor, comm_major
    row.recording = recording

cdef inline void add_to_superstep(
    word start, Py_ssize_t offset, long long comp_cpu, long long comp_ready, long long comm_cpu,
    long long comm_ready,
) noexcept:
    cdef Superstep *row = <Superstep *> <size_t> (start + <word> offset)
    row.comp_cpu, row.comp_ready = row.comp_cpu + comp_cpu, row.comp_ready + comp_ready
    row.comm_cpu, row.comm_ready = row.comm_cpu + comm_cpu, row.comm_ready + comm_ready

cdef inline void pack_traffic(
    word start, Py_ssize_t offset, long long record, int partner, unsigned char direction,
    long long nbytes, long long messages,
) noexcept:
    cdef Traffic *row = <Traffic *> <size_t> (start + <word> offset)
    row.record, row.partner, row.direction = record, partner, direction
    row.bytes, row.messages = nbytes, messages

cdef inline void publish(word start, Py_ssize_t offset, Py_ssize_t count) noexcept:
    store(start + <word> offset, <word> count)


@cython.final
cdef class Rows:
    cdef Py_ssize_t _row_bytes, _capacity
    cdef readonly Py_ssize_t count
    cdef public Py_ssize_t before
    cdef word _start
    cdef object _memory, _make_room

    @cython.locals(capacity=Py_ssize_t)
    cpdef int use(self, object memory, Py_ssize_t count) except -1
    cpdef int append_superstep(
        self, int pid, int group, long long superstep, unsigned char kind, int stack,
        long long start, long long arrive, long long released, long long end,
        long long comm_calls, long long sub, long long self_bytes,
        long long self_messages, long long comp_cpu, long long comp_ready, long long comm_cpu,
        long long comm_ready, long long comp_minor, long long comp_major, long long comm_minor,
        long long comm_major, long long recording,
    ) except -1
    cpdef bint is_nearly_full(self) noexcept
    @cython.locals(at=Py_ssize_t)
    cpdef int amend(
        self, Py_ssize_t row, long long comp_cpu, long long comp_ready, long long comm_cpu,
        long long comm_ready,
    ) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int append_traffic(
        self, long long record, int partner, unsigned char direction, long long nbytes,
        long long messages,
    ) except -1
    cdef int _extend(self) except -1
