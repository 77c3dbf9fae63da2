/* The whole recording: what Python says before the program begins, and what is done at its end. */

static struct {
    char *folder;   /* of the files of all ranks */
    char *header;   /* what Python knows, as members of a JSON object, with a comma at the end */
    char **join;    /* command that joins the files, with the folder and the trace; or NULL */
    char *by_hand;  /* how a user does it */
    char *recorded; /* what to say when it is done */
    char *error;    /* the exception that ended the program, or NULL */
    long process;
    int patience_ms;
    int64_t exit_begun;
    int was_aborted;
} setup;

static int one_host, finalized, world_size, was_initialized;

static int path_of(char *path, size_t room, int rank)
{
    return snprintf(path, room, "%s/rank-%06d.rec", setup.folder, rank) < (int)room;
}

/* Remove the files of ranks from a number on, as far as there are any. */
static void remove_files(int rank)
{
    char path[PATH_MAX];
    while (path_of(path, sizeof path, rank) && unlink(path) == 0)
        rank++;
}

static void write_header(void)
{
    struct text text = {0};
    char library[8192] = "", host[256] = "";
    int length;
    PMPI_Get_library_version(library, &length);
    gethostname(host, sizeof host - 1);
    library[strcspn(library, "\n")] = 0;
    add_text(&text, "[\"header\",{%s\"rank\":%d,\"size\":%d,\"begin\":%lld,\"library\":",
             setup.header, my_rank, world_size, (long long)begin_ns);
    add_quoted(&text, library);
    add_text(&text, ",\"host\":");
    add_quoted(&text, host);
    add_text(&text, "}]");
    write_text(&text);
}

/* Offset of the clock of rank 0 to that of this rank, by messages to and fro; the best of some. */
static void sample_clocks(void)
{
    enum { TAG = 32001, TIMES = 8 };
    int64_t at = now(), offset = 0, half = 0, theirs;
    if (my_rank == 0) {
        for (int rank = 1; rank < world_size; rank++)
            for (int i = 0; i < TIMES; i++) {
                PMPI_Recv(&theirs, 0, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                theirs = now();
                PMPI_Send(&theirs, sizeof theirs, MPI_BYTE, rank, TAG, MPI_COMM_WORLD);
            }
    } else {
        for (int i = 0; i < TIMES; i++) {
            int64_t from = now();
            PMPI_Send(&theirs, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
            PMPI_Recv(&theirs, sizeof theirs, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
            int64_t to = now();
            if (i == 0 || (to - from) / 2 < half) {
                half = (to - from) / 2;
                at = from + half;
                offset = theirs - at;
            }
        }
    }
    struct text text = {0};
    add_text(&text, "[\"clock\",[%lld,%lld,%lld]]", (long long)at, (long long)offset,
             (long long)half);
    write_text(&text);
}

static int all_on_one_host(void)
{
    MPI_Comm host;
    int size = 0;
    if (PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host))
        return 1;
    PMPI_Comm_size(host, &size);
    PMPI_Comm_free(&host);
    return size == world_size;
}

/* A process that the program forks is not recorded: it has a copy of everything. */
static void in_forked_process(void)
{
    recording = 0;
    if (file >= 0)
        close(file);
    file = -1;
    setup.folder = NULL;
}

static void begin_recording(void)
{
    char path[PATH_MAX];
    was_initialized = 1;
    if (recording || file >= 0 || !setup.folder)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (mkdir(setup.folder, 0777) && errno != EEXIST) {
        if (my_rank == 0) {
            snprintf(path, sizeof path, "the folder %s cannot be made: %s; the program runs "
                     "without being recorded", setup.folder, strerror(errno));
            say(path);
        }
        return;
    }
    int error = path_of(path, sizeof path, my_rank) ? open_file(path) : ENAMETOOLONG;
    if (error) {
        char text[PATH_MAX + 200];
        snprintf(text, sizeof text, "rank %d is not recorded, since %s cannot be written: %s",
                 my_rank, path, strerror(error));
        say(text);
        return;
    }
    if (my_rank == 0)
        remove_files(world_size); /* of an earlier job with more ranks that was killed */
    recording = 1;
    write_header();
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    new_comm(MPI_COMM_WORLD, NULL, BY_ALL);
    new_comm(MPI_COMM_SELF, NULL, BY_ALL);
    pthread_atfork(NULL, NULL, in_forked_process);
    one_host = all_on_one_host();
    if (!one_host)
        sample_clocks();
}

static void write_end(const char *error)
{
    struct text text = {0};
    add_text(&text, "[\"end\",{\"exit\":%lld,\"error\":",
             (long long)(setup.exit_begun ? setup.exit_begun : now()));
    add_quoted(&text, error);
    add_text(&text, finalize_ns < 0 ? ",\"finalize\":null}]" : ",\"finalize\":%lld}]",
             (long long)finalize_ns);
    write_text(&text);
}

static void aborted(int code)
{
    char text[PATH_MAX + 200];
    setup.was_aborted = 1;
    snprintf(text, sizeof text, "MPI_Abort(%d) by rank %d", code, my_rank);
    write_end(text);
    snprintf(text, sizeof text, "%s holds what was recorded until MPI_Abort; make a trace of it "
             "by: %s", setup.folder, setup.by_hand);
    say(text);
}

/* Wait until the files of all ranks are complete, but not long: a rank can have been killed.
 * Return whether they are. */
static int await_others(void)
{
    char path[PATH_MAX], state = ENDED;
    int complete = 1;
    int64_t until = now() + setup.patience_ms * 1000000LL;
    for (int rank = 1; rank < world_size; rank++) {
        path_of(path, sizeof path, rank);
        for (;;) {
            int other = open(path, O_RDONLY | O_CLOEXEC);
            state = RUNNING;
            if (other >= 0) {
                if (pread(other, &state, 1, STATE_AT) != 1)
                    state = RUNNING;
                close(other);
            }
            if (state != RUNNING || now() > until)
                break;
            usleep(2000);
        }
        complete &= state != RUNNING;
    }
    return complete;
}

static void join_files(int all_are_complete)
{
    char text[PATH_MAX + 200];
    int status = -1;
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (setup.join) {
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, 2, 1); /* standard output is the program's */
        if (posix_spawn(&child, setup.join[0], &actions, NULL, setup.join, environ) == 0)
            while (waitpid(child, &status, 0) < 0 && errno == EINTR)
                continue;
        if (status == 0) {
            if (all_are_complete) {
                remove_files(0);
                rmdir(setup.folder);
            }
            say(setup.recorded);
            return;
        }
    }
    snprintf(text, sizeof text, "%s holds what was recorded; make a trace of it by: %s",
             setup.folder, setup.by_hand);
    say(text);
}

/* Called by Python at its very end, after mpi4py has called MPI_Finalize; and by the C library, since
 * MPI_Finalize can end the process: MPICH does so where a message has not been received. */
static void close_recording(void)
{
    if (!setup.folder || getpid() != setup.process || file < 0 || setup.was_aborted)
        return;
    int ended_early = !recording;
    if (!ended_early)
        write_end(setup.error ? setup.error : "");
    int rank = my_rank;
    close_file();
    recording = 0;
    if (rank == 0)
        join_files(await_others());
}

/* -- what Python calls ------------------------------------------------------------------------ */

void bsp_record_setup(const char *folder, const char *header, char **join,
                               const char *by_hand, const char *recorded, long long begin,
                               int patience_ms)
{
    int count = 0;
    while (join && join[count])
        count++;
    if (count) {
        setup.join = calloc(count + 1, sizeof *setup.join);
        for (int i = 0; i < count; i++)
            setup.join[i] = strdup(join[i]);
    }
    setup.folder = strdup(folder);
    setup.header = strdup(header);
    setup.by_hand = strdup(by_hand);
    setup.recorded = strdup(recorded);
    setup.process = getpid();
    setup.patience_ms = patience_ms;
    begin_ns = begin;
    atexit(close_recording);
}

void bsp_record_python(void *(*thread_state)(void), int (*name_stack)(void),
                                const int offsets[5])
{
    python.thread_state = thread_state;
    python.name_stack = name_stack;
    python.state = offsets[0];
    python.frame = offsets[1];
    python.by_frame = offsets[2];
    python.previous = offsets[3];
    python.instruction = offsets[4];
}

void bsp_record_line(const char *text, long length)
{
    if (recording)
        add_line(text, length);
}

int bsp_record_was_initialized(void)
{
    return was_initialized;
}

/* The last that Python code does: no names of stacks from here on. */
void bsp_record_python_ends(const char *error)
{
    python.name_stack = NULL;
    setup.error = strdup(error);
    setup.exit_begun = now();
}

void (*bsp_record_closing(void))(void)
{
    return close_recording;
}

void bsp_record_sizes(int sizes[3])
{
    sizes[0] = sizeof(struct event);
    sizes[1] = sizeof(struct part);
    sizes[2] = sizeof(struct done);
}
