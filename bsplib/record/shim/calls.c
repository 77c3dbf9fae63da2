/* Begin and end of a recorded call. */

static __thread enum { NEW, FREE, BUSY, OTHER } thread_is;
/* Only one thread is recorded, the first that calls MPI after its begin: rows do not overlap, and
 * nothing needs a lock. */
static int thread_taken;
static int64_t last_reading, begin_ns, finalize_ns = -1;
static int schedstat = -1;

struct call {
    struct event *row;
    int64_t index;
    struct comm *comm;
    MPI_Status status; /* where the program ignores it */
};

static int64_t rows_count, last_poll = -1;

/* How long Python has made and read pickles since the last call, and the bytes of those it made. */
int64_t bsp_record_pickles[2];

static inline int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t cpu_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The second number of schedstat is the time for which the thread could run and had no core. */
static int64_t ready_time(void)
{
    char text[100], *after;
    ssize_t length = schedstat < 0 ? -1 : pread(schedstat, text, sizeof text - 1, 0);
    if (length <= 0)
        return NOT_READ;
    text[length] = 0;
    strtoll(text, &after, 10);
    return strtoll(after, NULL, 10);
}

static int take_thread(void)
{
    if (thread_is == NEW && recording && !__sync_lock_test_and_set(&thread_taken, 1)) {
        thread_is = FREE;
        schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    } else if (thread_is == NEW && recording) {
        thread_is = OTHER;
    }
    return thread_is == FREE && recording;
}

static void release_thread(void)
{
    if (schedstat >= 0)
        close(schedstat);
    schedstat = -1;
    last_reading = 0;
    thread_is = NEW;
    __sync_lock_release(&thread_taken);
}

/* Begin a row for a call; return whether it is recorded. */
static inline int begin(struct call *call, int number)
{
    if ((thread_is != FREE || !recording) && !take_thread())
        return 0;
    thread_is = BUSY; /* naming a stack runs Python code, which may call MPI */
    int stack = current_stack();
    struct event *row = place(EVENTS, sizeof *row);
    if (!row) {
        thread_is = FREE;
        return 0;
    }
    *row = (struct event){.call = number, .comm = UNKNOWN, .stack = stack, .partner = NOBODY,
                          .tag = MPI_ANY_TAG, .cpu = NOT_READ, .cpu_leave = NOT_READ,
                          .ready = NOT_READ, .ready_leave = NOT_READ,
                          .pickling = bsp_record_pickles[0],
                          .pickled_bytes = bsp_record_pickles[1]};
    bsp_record_pickles[0] = bsp_record_pickles[1] = 0;
    call->row = row;
    call->index = rows_count++;
    call->comm = NULL;
    return 1;
}

static inline void on_comm(struct call *call, MPI_Comm handle)
{
    call->comm = find_comm(handle);
    call->row->comm = call->comm ? call->comm->number : UNKNOWN;
}

/* To be called last before MPI: the row is in the file from here on. */
static inline void enter(struct call *call)
{
    struct event *row = call->row;
    row->enter = now();
    added(EVENTS, sizeof *row);
    if (row->enter - last_reading > READ_AFTER_NS) {
        row->cpu = cpu_time();
        row->ready = ready_time();
        last_reading = row->enter = now();
    }
}

/* The status that MPI sets: that of the program, or one of the recorder. It begins as zeros, since
 * MPI does not set all of it in all calls. */
static inline MPI_Status *status_of(struct call *call, MPI_Status *status)
{
    if (status != MPI_STATUS_IGNORE)
        return status;
    memset(&call->status, 0, sizeof call->status);
    return &call->status;
}

static inline void leave(struct call *call)
{
    struct event *row = call->row;
    row->leave = now();
    if (row->leave - row->enter > READ_AFTER_NS) {
        row->cpu_leave = cpu_time();
        row->ready_leave = ready_time();
        last_reading = row->leave;
    }
}

static inline void finish(void)
{
    if (thread_is == BUSY)
        thread_is = FREE;
}

/* A test or a probe found nothing. Several in a row are one row: the loop waits. */
static void polled(struct call *call)
{
    struct event *row = call->row, *before = row - 1;
    int follows = last_poll == call->index - 1 && (char *)row > chunks[EVENTS].rows &&
                  before->call == row->call && before->stack == row->stack &&
                  before->comm == row->comm && before->object == row->object &&
                  row->enter - before->leave < POLL_GAP_NS;
    if (!follows) {
        last_poll = call->index;
        return;
    }
    before->leave = row->leave;
    if (before->leave - before->enter > READ_AFTER_NS &&
        row->leave - last_reading > READ_AFTER_NS) {
        before->cpu_leave = cpu_time();
        before->ready_leave = ready_time();
        last_reading = before->leave;
    }
    chunks[EVENTS].head->used -= sizeof *row;
    rows_count--;
}

static void add_part(struct call *call, int partner, int64_t out, int64_t in)
{
    struct part *part = out || in ? place(PARTS, sizeof *part) : NULL;
    if (part) {
        *part = (struct part){call->index, partner, out, in};
        added(PARTS, sizeof *part);
    }
}

static void add_done(struct call *call, int64_t request, int source, int tag, int64_t in)
{
    struct done *done = place(DONES, sizeof *done);
    if (done) {
        *done = (struct done){call->index, request, source, tag, in};
        added(DONES, sizeof *done);
    }
}

/* -- bytes ------------------------------------------------------------------------------------ */

static inline int64_t volume(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    PMPI_Type_size_x(type, &size);
    return size > 0 ? count * size : 0;
}

static int64_t received(const MPI_Status *status)
{
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
    return bytes > 0 ? bytes : 0;
}

/* Only for messages: requests of MPI-IO do not set whether they were cancelled. */
static int cancelled(const MPI_Status *status)
{
    int flag = 0;
    PMPI_Test_cancelled(status, &flag);
    return flag;
}

/* An array of counts, of int or of MPI_Count. */
struct counts {
    const void *at;
    int large;
};

static inline MPI_Count count_at(struct counts counts, int i)
{
    return counts.large ? ((const MPI_Count *)counts.at)[i] : ((const int *)counts.at)[i];
}
