# The timers of sampling.py, whose signal handler is in C.
cdef extern from *:
    """
    #include <errno.h>
    #if defined(__linux__) && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
    #include <signal.h>
    #include <stddef.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <ucontext.h>
    #include <unistd.h>

    /* Ticks, one after the other, each as in sampling.py: five words, then two for each call. Pages
       that are not written take no memory. From the half on a tick has its innermost call only. */
    enum { BSP_WORDS = 1 << 20, BSP_CALLS = 128, BSP_CODES = 1 << 10 };
    enum { BSP_ON_CORE, BSP_BLOCKED, BSP_NO_CORE };
    static int64_t bsp_words[BSP_WORDS];
    static uintptr_t bsp_codes[BSP_CODES]; /* that are kept alive: a hash table, half full at most */

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
        int is_on, number, written, codes;
        timer_t timers[2]; /* of the CPU time of the thread, and of elapsed time */
        PyThreadState *thread;
        int64_t interval, of_run, start;
        int64_t cpu, system, off; /* that belong to ticks: CPU time, and time without it */
        /* As the timer of elapsed time found them last: */
        int64_t looked, was_off, others, sleeps, preempted;
    } bsp_sampler;

    static int64_t bsp_clock(clockid_t clock) {
        struct timespec moment;
        clock_gettime(clock, &moment);
        return moment.tv_sec * INT64_C(1000000000) + moment.tv_nsec;
    }

    static int bsp_set_timer(int which, int64_t first, int64_t next) {
        struct itimerspec times = {{next / 1000000000, next % 1000000000},
                                   {first / 1000000000, first % 1000000000}};
        return timer_settime(bsp_sampler.timers[which], 0, &times, NULL) == 0 ? 0 : errno;
    }

    static uintptr_t *bsp_place_of(uintptr_t code) {
        size_t at = code / 16 % BSP_CODES;
        while (bsp_codes[at] != 0 && bsp_codes[at] != code) at = (at + 1) % BSP_CODES;
        return bsp_codes + at;
    }

    static void bsp_know(uintptr_t code) {
        if (bsp_sampler.codes++ < BSP_CODES / 2) *bsp_place_of(code) = code;
    }

    /* Tell whether memory can be read: a frame may be one that was given back to the system an
       instruction ago. The kernel looks at the address before it refuses the first argument. */
    static int bsp_is_readable(void *address) {
        syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8);
        return errno != EFAULT;
    }

    static int bsp_keep(int64_t now, int64_t spent, int64_t system, int state) {
    #if PY_VERSION_HEX < 0x030D0000
        void *at = bsp_sampler.thread->cframe; /* on the stack of C */
        bsp_frame *frame = at == NULL ? at : (bsp_frame *) bsp_sampler.thread->cframe->current_frame;
    #else
        bsp_frame *frame = (bsp_frame *) bsp_sampler.thread->current_frame;
    #endif
        int most = bsp_sampler.written < BSP_WORDS / 2 ? BSP_CALLS : 1, depth = 0, is_new = 0;
        int64_t *tick = bsp_words + bsp_sampler.written;
        uintptr_t page = 0; /* that can be read: frames do not cross the end of mapped memory */
        if (bsp_sampler.written + 5 + 2 * most > BSP_WORDS) return 0;
        for (; frame != NULL && depth < most; frame = frame->previous, depth++) {
            if ((uintptr_t) frame >> 12 != page && !bsp_is_readable(frame)) break;
            page = (uintptr_t) frame >> 12;
            uintptr_t code = (uintptr_t) frame->code;
            tick[5 + 2 * depth] = code;
            tick[6 + 2 * depth] =
                frame->instruction - code - offsetof(PyCodeObject, co_code_adaptive);
            is_new |= *bsp_place_of(code) == 0;
        }
        tick[0] = now, tick[1] = spent, tick[2] = system < spent ? system : spent;
        tick[3] = state, tick[4] = depth;
        bsp_sampler.written += 5 + 2 * depth;
        if (is_new) PyErr_SetInterruptEx(bsp_sampler.number);
        return 1;
    }

    /* Tell whether the tick ended a wait in a system call (2), or came in one (1): the thread goes
       on behind the instruction that makes one, or repeats it. Elsewhere all that is known is
       whether the thread has slept. */
    #if defined(__x86_64__)
    #define BSP_AT(context) ((const char *) (context)->uc_mcontext.gregs[REG_RIP])
    #define BSP_RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
    #define BSP_SYSTEM_CALL "\\x0f\\x05"
    #elif defined(__aarch64__)
    #define BSP_AT(context) ((const char *) (context)->uc_mcontext.pc)
    #define BSP_RESULT(context) ((int64_t) (context)->uc_mcontext.regs[0])
    #define BSP_SYSTEM_CALL "\\x01\\x00\\x00\\xd4"
    #else
    #define BSP_AT(context) ""
    #define BSP_RESULT(context) 0
    #define BSP_SYSTEM_CALL ""
    #endif
    static int bsp_is_in_system(const ucontext_t *context) {
        const char *at = BSP_AT(context);
        size_t size = sizeof BSP_SYSTEM_CALL - 1;
        if (memcmp(at, BSP_SYSTEM_CALL, size) == 0) return 2;
        if (((uintptr_t) at & 4095) < size) return 0; /* the page before may not exist */
        if (memcmp(at - size, BSP_SYSTEM_CALL, size) != 0) return 0;
        return BSP_RESULT(context) == -EINTR ? 2 : 1;
    }

    /* Look whether the thread is off its core; all time without one since the last such tick counts
       for where it is. The next look comes at a multiple of a time: so processes are interrupted
       together, and not one after the other while the rest waits. */
    static void bsp_look(
        int64_t now, int64_t cpu, const struct rusage *used, const ucontext_t *context
    ) {
        int64_t others = bsp_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu, off = now - cpu;
        int64_t spent = off - bsp_sampler.off, elapsed = now - bsp_sampler.looked;
        /* A wait for a disk is not ended by a tick: then it has taken most of the time. But so has
           the lack of a core, where the thread lost its core in a system call that does not wait. */
        int where = used->ru_nvcsw != bsp_sampler.sleeps ? bsp_is_in_system(context) : 0;
        int is_long = 4 * (off - bsp_sampler.was_off) > 3 * elapsed;
        int had_core = used->ru_nivcsw == bsp_sampler.preempted;
        int is_asleep = where == 2 || (where == 1 && is_long && had_core);
        int is_ready = used->ru_nvcsw == bsp_sampler.sleeps && 2 * spent > elapsed;
        /* A thread that waits while others of its process have cores lets them compute. */
        int are_busy = 2 * (others - bsp_sampler.others) > elapsed;
        int state = is_ready ? BSP_NO_CORE : are_busy ? BSP_ON_CORE : BSP_BLOCKED;
        if ((is_asleep || is_ready) && bsp_keep(now, spent, 0, state)) bsp_sampler.off = off;
        bsp_sampler.looked = now, bsp_sampler.was_off = off, bsp_sampler.others = others;
        bsp_sampler.sleeps = used->ru_nvcsw, bsp_sampler.preempted = used->ru_nivcsw;
        int64_t step = (is_asleep ? 2 : 4) * bsp_sampler.interval;
        bsp_set_timer(1, step - now % step, 0);
    }

    static void bsp_handle(int number, siginfo_t *info, void *context) {
        int saved = errno;
        (void) number;
        if (!bsp_sampler.is_on) return; /* in a forked process, or after the end */
        int64_t now = bsp_clock(CLOCK_MONOTONIC), cpu = bsp_clock(CLOCK_THREAD_CPUTIME_ID);
        struct rusage used;
        getrusage(RUSAGE_THREAD, &used);
        int64_t system = used.ru_stime.tv_sec * INT64_C(1000000000) + used.ru_stime.tv_usec * 1000;
        int64_t spent = cpu - bsp_sampler.cpu;
        if (info->si_value.sival_int) bsp_look(now, cpu, &used, context);
        else if (bsp_keep(now, spent, system - bsp_sampler.system, BSP_ON_CORE))
            bsp_sampler.cpu = cpu, bsp_sampler.system = system;
        if (now - bsp_sampler.start > bsp_sampler.of_run * bsp_sampler.interval) {
            bsp_sampler.interval *= 2;
            bsp_set_timer(0, bsp_sampler.interval, bsp_sampler.interval);
        }
        errno = saved;
    }

    static void bsp_stop(void) {
        for (int which = 0; which < 2 && bsp_sampler.is_on; which++)
            timer_delete(bsp_sampler.timers[which]);
        bsp_sampler.is_on = 0;
    }

    /* Start the timers of this thread; the interpreter knows already what the signal calls. */
    static int bsp_start(int number, int64_t interval, int64_t of_run) {
        struct sigaction action;
        struct sigevent event;
        struct rusage used;
        memset(&bsp_sampler, 0, sizeof bsp_sampler);
        memset(bsp_codes, 0, sizeof bsp_codes);
        memset(&action, 0, sizeof action);
        memset(&event, 0, sizeof event);
        action.sa_sigaction = bsp_handle;
        action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = bsp_sampler.number = number;
        event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
        bsp_sampler.thread = PyThreadState_Get();
        bsp_sampler.interval = interval;
        bsp_sampler.of_run = of_run;
        bsp_sampler.start = bsp_sampler.looked = bsp_clock(CLOCK_MONOTONIC);
        bsp_sampler.cpu = bsp_clock(CLOCK_THREAD_CPUTIME_ID);
        getrusage(RUSAGE_THREAD, &used);
        bsp_sampler.system = used.ru_stime.tv_sec * INT64_C(1000000000);
        bsp_sampler.system += used.ru_stime.tv_usec * 1000;
        bsp_sampler.off = bsp_sampler.was_off = bsp_sampler.start - bsp_sampler.cpu;
        if (sigaction(number, &action, NULL) != 0
                || timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &bsp_sampler.timers[0]) != 0)
            return errno;
        event.sigev_value.sival_int = 1;
        if (timer_create(CLOCK_MONOTONIC, &event, &bsp_sampler.timers[1]) != 0) return errno;
        bsp_sampler.is_on = 1;
        return bsp_set_timer(0, interval, interval) || bsp_set_timer(1, interval, 0);
    }

    static PyObject *bsp_ticks(void) {
        size_t bytes = bsp_sampler.written * sizeof bsp_words[0];
        return PyMemoryView_FromMemory((char *) bsp_words, bytes, PyBUF_READ);
    }
    #else
    static int bsp_start(int number, int64_t interval, int64_t of_run) { return ENOSYS; }
    static void bsp_stop(void) {}
    static void bsp_know(uintptr_t code) {}
    static PyObject *bsp_ticks(void) { return PyMemoryView_FromMemory("", 0, PyBUF_READ); }
    #endif
    """
    int start_timers "bsp_start"(int number, long long interval, long long of_run) noexcept
    void stop_timers "bsp_stop"() noexcept
    void know "bsp_know"(size_t code) noexcept
    object ticks "bsp_ticks"()
