cimport cython
from bsplib.core.atomics cimport cpu_ns, now_ns as now, rounded, store, this_thread, word
from cpython.bytes cimport PyBytes_AS_STRING

cdef extern from *:
    """
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/resource.h>
    #include <time.h>
    #include <unistd.h>

    static int bsp_open_waits(void) {
        return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    }

    static void bsp_close_waits(int file) {
        close(file);
    }

    static long long bsp_waited(int file) {
        char text[81], *at = text;
        long long numbers[3] = {0, 0, 0};
        ssize_t length = pread(file, text, sizeof text - 1, 0);
        if (length <= 0) return -1;
        text[length] = 0;
        for (int i = 0; i < 3; i++) numbers[i] = strtoll(at, &at, 10);
        return numbers[0] || numbers[1] || numbers[2] ? numbers[1] : -1;
    }

    static long long bsp_process_cpu(void) {
        struct timespec used;
        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
        return used.tv_sec * 1000000000LL + used.tv_nsec;
    }

    static long long bsp_page_faults(void) {
    #ifdef RUSAGE_THREAD
        struct rusage used;
        if (getrusage(RUSAGE_THREAD, &used) == 0)
            return (long long) used.ru_minflt + ((long long) used.ru_majflt << 40);
    #endif
        return -1;
    }
    """
    int open_waits "bsp_open_waits"() noexcept
    void close_waits "bsp_close_waits"(int file) noexcept
    long long waited_ns "bsp_waited"(int file) noexcept
    long long process_cpu_ns "bsp_process_cpu"() noexcept
    long long page_faults "bsp_page_faults"() noexcept

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "rows are little-endian"
    #endif
    static inline void bsp_write_row(char *at, const long long *row, const unsigned char *sizes) {
        for (; *sizes; at += *sizes++, row++) {
            if (*sizes == 8) memcpy(at, row, 8); /* a size that is known makes it one store */
            else if (*sizes == 4) memcpy(at, row, 4);
            else *at = (char) *row;
        }
    }
    """
    void bsp_write_row(char *at, const long long *row, const unsigned char *sizes) noexcept

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

cdef inline void write_row(
    word start, Py_ssize_t offset, long long[::1] row, bytes sizes
) noexcept:
    cdef char *at = <char *> <size_t> (start + <word> offset)
    bsp_write_row(at, &row[0], <const unsigned char *> PyBytes_AS_STRING(sizes))

cdef inline void publish(word start, Py_ssize_t offset, Py_ssize_t count) noexcept:
    store(start + <word> offset, <word> count)

cdef long long _NO
cdef long long DUE_NS, _MINOR

@cython.final
cdef class Rows:
    cdef Py_ssize_t _row_bytes, _capacity
    cdef readonly Py_ssize_t count
    cdef public Py_ssize_t before
    cdef word _start
    cdef object _memory, _make_room
    cdef bytes _sizes
    cdef readonly long long[::1] row

    @cython.locals(capacity=Py_ssize_t)
    cpdef int use(self, object memory, Py_ssize_t count) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int append(self) except -1
    cdef int _extend(self) except -1

@cython.final
cdef class Usage:
    cdef int _file
    cdef word _thread
    cdef public long long carried_ns, own_threads_ns
    cdef readonly long long[::1] used
    cdef long long _last_ns, _given_ns, _cpu_ns, _process_ns, _waited_ns, _faults
    cdef readonly bint has_waits, has_faults
    cdef long long _next_cpu_ns, _next_ready_ns

    cpdef dict reasons(self)
    @cython.locals(thread=word)
    cdef int _begin(self, long long now_ns) except -1
    cpdef int close(self) except -1
    @cython.locals(waited=cython.longlong, ready=cython.longlong, thread=word)
    cpdef bint rest(self, long long end_ns, long long now_ns) except -1
    cpdef bint end_stretch(
        self, long long elapsed_ns, long long calls_ns, long long now_ns
    ) except -1
    @cython.locals(
        cpu=cython.longlong, waited=cython.longlong, faults=cython.longlong, given=cython.longlong,
        used=cython.longlong, ready=cython.longlong, others=cython.longlong, is_same=bint,
        total=cython.longlong, left=cython.longlong, asleep=cython.longlong,
        blocked=cython.longlong, awake=cython.longlong, room=cython.longlong,
        in_calls=cython.longlong, last=cython.longlong, waited_last=cython.longlong,
        waited_calls=cython.longlong, since=cython.longlong,
    )
    cdef int _share(self, long long elapsed_ns, long long calls_ns, long long now_ns) except -1
    cpdef long long read_for(self, long long began_ns) noexcept

@cython.final
cdef class Log:
    cdef Rows _supersteps, _traffic
    cdef Usage _usage
    cdef int _number, _pid, _member
    cdef object _members
    cdef long long _began_ns, _start_ns, _opened_ns, _end_ns, _sub_ns
    cdef long long _piece_ns, _calls_ns
    cdef long long _comp_cpu, _comp_ready, _comm_cpu, _comm_ready
    cdef long long _comp_minor, _comp_major, _comm_minor, _comm_major, _own_bytes, _own_messages
    cdef readonly long long arrived_ns

    @cython.locals(usage=Usage, faults=cython.longlong)
    cdef void _begin_usage(self) noexcept
    @cython.locals(usage=Usage, took=cython.longlong)
    cpdef int arrive(self, long long arrive_ns, long long comm_ns) except -1
    @cython.locals(usage=Usage)
    cpdef int suspend(self, long long now_ns, long long comm_ns) except -1
    @cython.locals(calls=cython.longlong, is_read=bint, used="long long[::1]")
    cdef bint _end_piece(self, Usage usage, long long now_ns, long long comm_ns) except -1
    @cython.locals(row="long long[::1]")
    cpdef int add_traffic(
        self, int partner, int direction, long long nbytes, long long messages
    ) except -1
    @cython.locals(
        began=cython.longlong, usage=Usage, computed=cython.longlong, used="long long[::1]",
        row="long long[::1]",
    )
    cpdef int add_superstep(
        self, long long superstep, int kind, int stack, long long arrive_ns,
        long long released_ns, long long end_ns, long long comm_ns, long long pickling_ns,
        long long pickled_bytes,
    ) except -1
    @cython.locals(usage=Usage)
    cpdef bint rest(self, long long now_ns) except -1
    @cython.locals(usage=Usage)
    cpdef int begin(self, long long start_ns) except -1
    @cython.locals(parent=Log)
    cpdef int leave(self, Log parent) except -1
