# The timer of sampling.py, whose signal handler is in C, and the types of its names.
cdef extern from *:
    """
    #if defined(__linux__) && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
    #include <errno.h>
    #include <signal.h>
    #include <stddef.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <ucontext.h>
    #include <unistd.h>

    /* As in sampling.py. A tick of the ring: times, and the calls, the innermost first. */
    enum { BSP_CALLS = 128, BSP_RING = 64 };
    typedef struct {
        int64_t time, cpu, process, sleeps, in_system, depth;
        struct { uintptr_t code, offset; } calls[BSP_CALLS];
    } bsp_tick;
    typedef struct {
        volatile int64_t written, read; /* by the handler, and by the reader in the same thread */
        bsp_tick ticks[BSP_RING];
    } bsp_ring;

    /* The beginning of a frame of the interpreter. Its header is not for extensions; a layout
       holds for all releases of one version of Python. */
    typedef struct bsp_frame {
    #if PY_VERSION_HEX < 0x030C0000
        void *function, *globals, *builtins, *locals, *code, *object;
        struct bsp_frame *previous;
    #else
        void *code;
        struct bsp_frame *previous;
        void *function, *globals, *builtins, *locals, *object;
    #endif
        uintptr_t instruction; /* which is executed, or will be next */
    } bsp_frame;

    static struct {
        int is_on;
        timer_t timer;
        int64_t interval, last_interval, of_run, start;
        PyThreadState *thread;
        bsp_ring *ring;
    } bsp_sampler;

    static int64_t bsp_clock(clockid_t clock) {
        struct timespec moment;
        clock_gettime(clock, &moment);
        return moment.tv_sec * INT64_C(1000000000) + moment.tv_nsec;
    }

    /* Tell whether memory can be read: a frame may be one that was given back to the system an
       instruction ago. The kernel looks at the address before it refuses the first argument. */
    static int bsp_is_readable(void *address) {
        syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8);
        return errno != EFAULT;
    }

    static void bsp_walk(bsp_tick *tick) {
    #if PY_VERSION_HEX < 0x030D0000
        void *at = bsp_sampler.thread->cframe; /* on the stack of C */
        bsp_frame *frame = at == NULL ? at : (bsp_frame *) bsp_sampler.thread->cframe->current_frame;
    #else
        bsp_frame *frame = (bsp_frame *) bsp_sampler.thread->current_frame;
    #endif
        uintptr_t page = 0; /* that can be read: frames do not cross the end of mapped memory */
        for (tick->depth = 0; frame != NULL && tick->depth < BSP_CALLS; tick->depth++) {
            if ((uintptr_t) frame >> 12 != page && !bsp_is_readable(frame)) break;
            page = (uintptr_t) frame >> 12;
            uintptr_t code = (uintptr_t) frame->code;
            tick->calls[tick->depth].code = code;
            tick->calls[tick->depth].offset =
                frame->instruction - code - offsetof(PyCodeObject, co_code_adaptive);
            frame = frame->previous;
        }
    }

    /* Tell whether the tick came in a system call: the thread goes on behind the instruction that
       makes one, or repeats it. Elsewhere all that is known is whether the thread has slept. */
    #if defined(__x86_64__)
    #define BSP_AT(context) ((const char *) (context)->uc_mcontext.gregs[REG_RIP])
    #define BSP_SYSTEM_CALL "\\x0f\\x05"
    #elif defined(__aarch64__)
    #define BSP_AT(context) ((const char *) (context)->uc_mcontext.pc)
    #define BSP_SYSTEM_CALL "\\x01\\x00\\x00\\xd4"
    #else
    #define BSP_AT(context) ""
    #define BSP_SYSTEM_CALL ""
    #endif
    static int bsp_is_in_system(const ucontext_t *context) {
        const char *at = BSP_AT(context);
        size_t size = sizeof BSP_SYSTEM_CALL - 1;
        int has_before = ((uintptr_t) at & 4095) >= size; /* the page before may not exist */
        return memcmp(at, BSP_SYSTEM_CALL, size) == 0
            || (has_before && memcmp(at - size, BSP_SYSTEM_CALL, size) == 0);
    }

    static int bsp_set_timer(void) {
        struct itimerspec times = {{0, bsp_sampler.interval}, {0, bsp_sampler.interval}};
        return timer_settime(bsp_sampler.timer, 0, &times, NULL) == 0 ? 0 : errno;
    }

    static void bsp_handle(int number, siginfo_t *info, void *context) {
        int saved = errno;
        bsp_ring *ring = bsp_sampler.ring;
        struct rusage used;
        (void) info;
        if (!bsp_sampler.is_on) return; /* in a forked process, or after the end */
        int64_t now = bsp_clock(CLOCK_MONOTONIC);
        if (ring->written - ring->read < BSP_RING) { /* else the next one stands for this time */
            bsp_tick *tick = &ring->ticks[ring->written % BSP_RING];
            getrusage(RUSAGE_THREAD, &used);
            tick->time = now;
            tick->cpu = bsp_clock(CLOCK_THREAD_CPUTIME_ID);
            tick->process = bsp_clock(CLOCK_PROCESS_CPUTIME_ID);
            tick->sleeps = used.ru_nvcsw;
            tick->in_system = bsp_is_in_system(context);
            bsp_walk(tick);
            ring->written++;
            PyErr_SetInterruptEx(number);
        }
        if (bsp_sampler.interval < bsp_sampler.last_interval
                && now - bsp_sampler.start > bsp_sampler.of_run * bsp_sampler.interval) {
            bsp_sampler.interval *= 2;
            bsp_set_timer();
        }
        errno = saved;
    }

    static void bsp_stop(void) {
        if (bsp_sampler.is_on) timer_delete(bsp_sampler.timer);
        bsp_sampler.is_on = 0;
    }

    /* Start the timer of this thread; the interpreter knows already what the signal calls. */
    static int bsp_start(int number, size_t ring, int64_t first, int64_t last, int64_t of_run) {
        struct sigaction action;
        struct sigevent event;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = bsp_handle;
        action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = number;
        event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
        bsp_sampler.ring = (bsp_ring *) ring;
        bsp_sampler.interval = first;
        bsp_sampler.last_interval = last;
        bsp_sampler.of_run = of_run;
        bsp_sampler.thread = PyThreadState_Get();
        bsp_sampler.start = bsp_clock(CLOCK_MONOTONIC);
        if (sigaction(number, &action, NULL) != 0
                || timer_create(CLOCK_MONOTONIC, &event, &bsp_sampler.timer) != 0) return errno;
        bsp_sampler.is_on = 1;
        return bsp_set_timer();
    }
    #else
    #include <errno.h>
    static int bsp_start(int number, size_t ring, int64_t first, int64_t last, int64_t of_run) {
        return ENOSYS;
    }
    static void bsp_stop(void) {}
    #endif
    """
    int start_timer "bsp_start"(
        int number, size_t ring, long long first_ns, long long last_ns, long long of_run
    ) noexcept
    void stop_timer "bsp_stop"() noexcept
