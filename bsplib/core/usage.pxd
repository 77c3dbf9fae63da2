# The types of usage.py when it is compiled, and the system's functions.
cimport cython

from bsplib.core.atomics cimport cpu_ns, now_ns as now, rounded, this_thread, word
from bsplib.core.rows cimport Rows

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

cdef long long DUE_NS, _MINOR
cdef Py_ssize_t _MOST_OPEN


@cython.final
cdef class Usage:
    cdef Rows _rows
    cdef int _file
    cdef word _thread
    cdef readonly long long last_ns
    cdef public long long open_ns, carried_ns, own_threads_ns
    cdef public long long[::1] used
    cdef long long _cpu_ns, _process_ns, _waited_ns, _faults
    cdef readonly bint has_waits, has_faults
    cdef long long _next_cpu_ns, _next_ready_ns
    cdef double _on_core, _off_core
    cdef Py_ssize_t _first, _count
    cdef long long[::1] _open_comp, _open_comm

    cpdef dict reasons(self)
    @cython.locals(thread=word)
    cpdef int begin(self, long long now_ns) except -1
    cpdef int close(self) except -1
    @cython.locals(waited=cython.longlong, ready=cython.longlong, thread=word)
    cpdef int rest(self, long long end_ns, long long now_ns) except -1
    cpdef bint is_late(self, long long end_ns, long long start_ns) noexcept
    cpdef bint is_due(self, long long now_ns) noexcept
    @cython.locals(
        cpu=cython.longlong, waited=cython.longlong, faults=cython.longlong, is_same=bint, since=cython.longlong,
        used=cython.longlong, given=cython.longlong, last=cython.longlong, left=cython.longlong,
        ready=cython.longlong, others=cython.longlong, at=Py_ssize_t, comp=cython.longlong, comm=cython.longlong,
        comp_cpu=cython.longlong, comm_cpu=cython.longlong, comp_ready=cython.longlong,
        comm_ready=cython.longlong, total=cython.longlong, blocked=cython.longlong, longer=cython.longlong,
        room=cython.longlong, waited_last=cython.longlong, waited_open=cython.longlong,
    )
    cpdef int settle(self, long long elapsed_ns, long long now_ns) except -1
    cpdef long long read_for(self, long long began_ns) noexcept
    cpdef long long on_core(self, long long open_ns) noexcept
    cpdef long long off_core(self, long long left_ns) noexcept
    cpdef int keep_open(self, Py_ssize_t record, long long comp_ns, long long comm_ns) except -1
