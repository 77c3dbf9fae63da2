# The types of sampling.py when it is compiled, and the timer with its signal handler in C.
cimport cython
from cpython.object cimport PyObject

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    enum { BSP_ON_CORE, BSP_BLOCKED, BSP_NO_CORE };
    enum { BSP_CALLS = 128, BSP_RUNS = 64, BSP_MOST_UNREAD = 32, BSP_MOST_MISSED = 100000 };

    typedef struct {
        uintptr_t code;
        uintptr_t instruction;
    } bsp_place;

    /* Ticks one after the other that have found the same stack. */
    typedef struct {
        int64_t first, last, count; /* times in ns; how many ticks */
        int32_t depth;
        int32_t state; /* what the thread mostly did before each of them */
        bsp_place calls[BSP_CALLS]; /* the innermost first */
    } bsp_ticks;

    #if defined(__linux__) && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
    #include <errno.h>
    #include <fcntl.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdatomic.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>

    #define BSP_CAN_SAMPLE 1

    /* The beginning of a frame of the interpreter. Its header is not for extensions; a layout
       holds for all releases of one version of Python. */
    typedef struct bsp_frame {
    #if PY_VERSION_HEX < 0x030C0000
        void *function, *globals, *builtins, *locals;
        void *code;
        void *object;
        struct bsp_frame *previous;
    #else
        void *code;
        struct bsp_frame *previous;
        void *function, *globals, *builtins, *locals, *object;
    #endif
        uintptr_t instruction; /* which is executed, or will be next */
    } bsp_frame;

    static struct {
        int signal; /* 0: it has none yet */
        int timer;
        int is_on;
        int64_t interval;
        PyThreadState *thread;
        /* The handler runs in the thread that reads what it writes, between two instructions of
           it: the order of the reader's stores is all that counts. */
        int waits; /* file with the time that the thread was ready without a core; -1: none */
        int64_t time, cpu, ready; /* at the tick before: time, and what the thread had of it */
        int64_t process; /* CPU time of all threads at the tick before */
        int64_t others; /* CPU time of the others since the thread blocked, not counted yet */
        volatile int asked; /* the interpreter was asked to call the reader */
        volatile uint32_t written, claimed, read;
        bsp_ticks runs[BSP_RUNS];
        bsp_ticks now; /* of the handler alone */
    } bsp_sampler;

    /* Tell whether memory can be read: a frame may be one that was given back to the system an
       instruction ago. The kernel looks at the address before it refuses the first argument. */
    static int bsp_is_readable(uintptr_t address) {
        syscall(SYS_rt_sigprocmask, ~0, (void *) (address & ~(uintptr_t) 7), NULL, 8);
        return errno != EFAULT;
    }

    static int32_t bsp_walk(bsp_place *calls) {
    #if PY_VERSION_HEX < 0x030D0000
        void *inner = bsp_sampler.thread->cframe;
        if (inner == NULL || !bsp_is_readable((uintptr_t) inner)) return 0;
        bsp_frame *frame = (bsp_frame *) bsp_sampler.thread->cframe->current_frame;
    #else
        bsp_frame *frame = (bsp_frame *) bsp_sampler.thread->current_frame;
    #endif
        uintptr_t known = 0; /* a page that can be read */
        int32_t depth = 0;
        for (; frame != NULL && depth < BSP_CALLS; frame = frame->previous) {
            uintptr_t ends[2] = {(uintptr_t) frame, (uintptr_t) (frame + 1) - 1};
            if (ends[0] & 7) break;
            for (int i = 0; i < 2; i++) {
                if (ends[i] >> 12 == known) continue;
                if (!bsp_is_readable(ends[i])) return depth;
                known = ends[i] >> 12;
            }
            calls[depth].code = (uintptr_t) frame->code;
            calls[depth].instruction = frame->instruction;
            depth++;
        }
        return depth;
    }

    static int64_t bsp_clock(clockid_t clock) {
        struct timespec moment;
        clock_gettime(clock, &moment);
        return moment.tv_sec * INT64_C(1000000000) + moment.tv_nsec;
    }

    /* Return for how long the thread was ready without a core: the second number of the file. */
    static int64_t bsp_ready(void) {
        char text[64];
        ssize_t size = bsp_sampler.waits < 0 ? 0 : pread(bsp_sampler.waits, text, sizeof text, 0);
        ssize_t i = 0;
        int64_t ready = 0;
        while (i < size && text[i] != ' ') i++;
        for (i++; i < size && text[i] >= '0' && text[i] <= '9'; i++)
            ready = 10 * ready + (text[i] - '0');
        return ready;
    }

    /* Return what the thread mostly did since the last tick. */
    static int32_t bsp_state(int64_t now) {
        int64_t cpu = bsp_clock(CLOCK_THREAD_CPUTIME_ID), ready = bsp_ready();
        int64_t on = cpu - bsp_sampler.cpu, without = ready - bsp_sampler.ready;
        int64_t blocked = now - bsp_sampler.time - on - without;
        int64_t process = bsp_clock(CLOCK_PROCESS_CPUTIME_ID);
        int64_t others = process - bsp_sampler.process - on;
        if (blocked < 0 && without > 0) {
            /* It lost its core after it was asked for the time: so this is of the next tick, which
               has the time itself. */
            int64_t later = -blocked < without ? -blocked : without;
            without -= later;
            ready -= later;
        }
        bsp_sampler.time = now;
        bsp_sampler.cpu = cpu;
        bsp_sampler.ready = ready;
        bsp_sampler.process = process;
        if (blocked > on && blocked >= without) {
            /* The CPU time of other threads comes in steps of some ms: it is kept for later. */
            bsp_sampler.others += others > 0 ? others : 0;
            if (2 * bsp_sampler.others < blocked) return BSP_BLOCKED;
            bsp_sampler.others -= blocked < bsp_sampler.others ? blocked : bsp_sampler.others;
            return BSP_ON_CORE;
        }
        bsp_sampler.others = 0;
        return on >= without ? BSP_ON_CORE : BSP_NO_CORE;
    }

    static void bsp_tick(int number, siginfo_t *info, void *context) {
        int saved = errno;
        bsp_ticks *now = &bsp_sampler.now, *last;
        int64_t missed = info->si_code == SI_TIMER ? info->si_overrun : 0;
        uint32_t written = bsp_sampler.written;
        size_t size;
        int is_same;
        (void) context;
        if (!bsp_sampler.is_on) return; /* in a forked process, or after the end */
        if (missed > BSP_MOST_MISSED) missed = BSP_MOST_MISSED;
        now->last = bsp_clock(CLOCK_MONOTONIC);
        now->state = bsp_state(now->last);
        now->first = now->last - missed * bsp_sampler.interval;
        now->count = 1 + missed;
        now->depth = bsp_walk(now->calls);
        size = now->depth * sizeof(bsp_place);
        last = &bsp_sampler.runs[(written - 1) % BSP_RUNS];
        is_same = written != 0 && last->depth == now->depth
            && memcmp(last->calls, now->calls, size) == 0;
        if (written != bsp_sampler.claimed && (written - bsp_sampler.read >= BSP_RUNS
                || (is_same && last->state == now->state))) {
            last->last = now->last;
            last->count += now->count;
        } else {
            memcpy(&bsp_sampler.runs[written % BSP_RUNS], now, offsetof(bsp_ticks, calls) + size);
            bsp_sampler.written = written + 1;
        }
        /* The reader was asked about the same stack before, and keeps its code objects alive. */
        if (!bsp_sampler.asked
                && (!is_same || bsp_sampler.written - bsp_sampler.read > BSP_MOST_UNREAD)) {
            bsp_sampler.asked = 1;
            PyErr_SetInterruptEx(number);
        }
        errno = saved;
    }

    /* On Linux sigprocmask is of the thread. The symbol of pthread_sigmask is that of glibc 2.32
       where it is linked with that or a later one, and wheels run with an earlier one, too. */
    static int bsp_mask(int how) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, bsp_sampler.signal);
        return sigprocmask(how, &set, NULL);
    }

    static void bsp_close_waits(void) {
        if (bsp_sampler.waits >= 0) close(bsp_sampler.waits);
        bsp_sampler.waits = -1;
    }

    /* A system call can be restarted again and again by a signal if it takes longer than the time
       between two of them; so it is with fork on older kernels. */
    static void bsp_before_fork(void) {
        if (bsp_sampler.is_on) bsp_mask(SIG_BLOCK);
    }
    static void bsp_after_fork(int is_child) {
        if (!bsp_sampler.is_on) return;
        if (is_child) { /* it has no timer */
            bsp_sampler.is_on = 0;
            bsp_close_waits();
        }
        bsp_mask(SIG_UNBLOCK);
    }

    /* Return a real-time signal that the program does not handle; 0 if there is none. */
    static int bsp_free_signal(void) {
        struct sigaction action;
        for (int number = SIGRTMAX - 2; number > SIGRTMIN; number--) {
            if (sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO)
                && action.sa_handler == SIG_DFL) return number;
        }
        return 0;
    }

    static void bsp_stop(void) {
        if (!bsp_sampler.is_on) return;
        syscall(SYS_timer_delete, bsp_sampler.timer);
        bsp_sampler.is_on = 0;
        bsp_close_waits();
    }

    /* Start the timer of this thread; the interpreter knows already what the signal calls. */
    static int bsp_start(int number, int64_t interval) {
        struct sigaction action;
        struct sigevent event;
        struct itimerspec times;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = bsp_tick;
        action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = number;
        event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
        bsp_sampler.signal = number;
        bsp_sampler.interval = interval;
        bsp_sampler.thread = PyThreadState_Get();
        bsp_sampler.written = bsp_sampler.claimed = bsp_sampler.read = 0;
        bsp_sampler.asked = 0;
        bsp_sampler.waits = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
        bsp_state(bsp_clock(CLOCK_MONOTONIC));
        bsp_sampler.others = 0;
        if (sigaction(number, &action, NULL) != 0) return errno;
        /* The C library has the same call in a library of its own. */
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &bsp_sampler.timer) != 0) {
            int reason = errno;
            bsp_close_waits();
            return reason;
        }
        bsp_sampler.is_on = 1;
        bsp_mask(SIG_UNBLOCK);
        times.it_value.tv_sec = times.it_interval.tv_sec = interval / 1000000000;
        times.it_value.tv_nsec = times.it_interval.tv_nsec = interval % 1000000000;
        if (syscall(SYS_timer_settime, bsp_sampler.timer, 0, &times, NULL) != 0) {
            int reason = errno;
            bsp_stop();
            return reason;
        }
        return 0;
    }

    /* Return the oldest ticks that were not read yet, or NULL; they stay until the next call. */
    static const bsp_ticks *bsp_next(void) {
        bsp_sampler.read = bsp_sampler.claimed;
        if (bsp_sampler.claimed == bsp_sampler.written) return NULL;
        atomic_signal_fence(memory_order_seq_cst);
        bsp_sampler.claimed++; /* from here on the handler does not add to them */
        atomic_signal_fence(memory_order_seq_cst);
        return &bsp_sampler.runs[bsp_sampler.read % BSP_RUNS];
    }
    static void bsp_answer(void) { bsp_sampler.asked = 0; }

    #else
    #define BSP_CAN_SAMPLE 0
    static void bsp_before_fork(void) {}
    static void bsp_after_fork(int is_child) { (void) is_child; }
    static int bsp_free_signal(void) { return 0; }
    static int bsp_start(int number, int64_t interval) { (void) number; (void) interval; return 1; }
    static void bsp_stop(void) {}
    static const bsp_ticks *bsp_next(void) { return NULL; }
    static void bsp_answer(void) {}
    #endif

    /* The offset of an instruction in its code, in bytes; -1 if it is in no other place. */
    static Py_ssize_t bsp_offset(PyObject *code, uintptr_t instruction) {
        uintptr_t first = (uintptr_t) ((PyCodeObject *) code)->co_code_adaptive;
        Py_ssize_t size = Py_SIZE(code) * 2;
        if (instruction < first || instruction >= first + size) return -1;
        return (Py_ssize_t) (instruction - first);
    }
    static int bsp_line(PyObject *code, Py_ssize_t offset) {
        return PyCode_Addr2Line((PyCodeObject *) code, (int) offset);
    }
    """
    ctypedef struct RawPlace "bsp_place":
        size_t code
        size_t instruction
    ctypedef struct Ticks "bsp_ticks":
        long long first, last, count
        int depth, state
        RawPlace *calls
    bint BSP_CAN_SAMPLE
    void bsp_before_fork() noexcept
    void bsp_after_fork(int is_child) noexcept
    int bsp_free_signal() noexcept
    int bsp_start(int number, long long interval) noexcept
    void bsp_stop() noexcept
    const Ticks *bsp_next() noexcept
    void bsp_answer() noexcept
    Py_ssize_t bsp_offset(object code, size_t instruction) noexcept
    int bsp_line(object code, Py_ssize_t offset) noexcept


cdef inline bint can_sample() noexcept:
    return BSP_CAN_SAMPLE

cdef inline void before_fork() noexcept:
    bsp_before_fork()

cdef inline void after_fork(bint is_child) noexcept:
    bsp_after_fork(is_child)

cdef inline int free_signal() noexcept:
    return bsp_free_signal()

cdef inline int start_timer(int number, long long interval_ns) noexcept:
    return bsp_start(number, interval_ns)

cdef inline void stop_timer() noexcept:
    bsp_stop()

cdef inline void answer() noexcept:
    bsp_answer()

# The times and number of the next ticks, what the thread mostly did, and the places of
# their stack as bytes; None: there are no more.
cdef inline object next_ticks():
    cdef const Ticks *ticks = bsp_next()
    if ticks == NULL:
        return None
    cdef const char *places = <const char *> ticks.calls
    key = places[: ticks.depth * <Py_ssize_t> sizeof(RawPlace)]
    return ticks.first, ticks.last, ticks.count, ticks.state, key

# The code, instruction and line of one place, for a code that is alive.
cdef inline object offset_and_line(object code, size_t instruction):
    cdef Py_ssize_t offset = bsp_offset(code, instruction)
    cdef int line = bsp_line(code, offset)
    return offset, line if line > 0 else code.co_firstlineno


cdef class Sampler:
    cdef long long _interval_ns
    cdef object _define, _save
    cdef dict _numbers, _stacks, _positions, _first_of_line, _codes
    cdef list _rows, _places, _lines
    cdef long long _first, _last, _count, _number
    cdef bint _reads

    @cython.locals(first=cython.longlong, last=cython.longlong, count=cython.longlong,
                   state=cython.longlong, number=cython.longlong)
    cdef void _read(self, object frame) except *
    cdef void _add(self, long long first, long long last, long long count, long long number) \
        except *
    cdef void _end_row(self) except *
    @cython.locals(found=list, lines=list, depth=Py_ssize_t, number=cython.longlong)
    cdef long long _number_new(self, bytes key, object frame) except -1
    @cython.locals(found=list, raw=bytes, first=Py_ssize_t, position=Py_ssize_t)
    cdef list _positions_of(self, bytes key, object frame)
    cdef Py_ssize_t _position_new(self, bytes raw, object frame) except? -1
    cdef void _forget(self) except *
