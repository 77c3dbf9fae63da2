/* The calls that need more than a rule: begin and end. */

int PMPI_Init(int *, char ***);
int PMPI_Init_thread(int *, char ***, int, int *);
int PMPI_Finalize(void);
int PMPI_Abort(MPI_Comm, int);

static void initialized(int64_t from)
{
    struct call call;
    begin_recording();
    if (!begin(&call, CALL_Init))
        return;
    on_comm(&call, MPI_COMM_WORLD);
    enter(&call);
    leave(&call);
    call.row->enter = from;
    finish();
    release_thread(); /* a program can leave MPI to another thread than the one that began it */
}

int MPI_Init(int *count, char ***arguments)
{
    int64_t from = now();
    int error = PMPI_Init(count, arguments);
    if (error == MPI_SUCCESS)
        initialized(from);
    return error;
}

int MPI_Init_thread(int *count, char ***arguments, int required, int *provided)
{
    int64_t from = now();
    int error = PMPI_Init_thread(count, arguments, required, provided);
    if (error == MPI_SUCCESS)
        initialized(from);
    return error;
}

int MPI_Finalize(void)
{
    struct call call;
    if (recording && !one_host)
        sample_clocks();
    if (!begin(&call, CALL_Finalize)) {
        finalize_ns = now();
        return PMPI_Finalize();
    }
    on_comm(&call, MPI_COMM_WORLD);
    enter(&call);
    finalize_ns = call.row->enter;
    int error = PMPI_Finalize();
    leave(&call);
    finish();
    finalized = 1;
    return error;
}

int MPI_Abort(MPI_Comm comm, int code)
{
    struct call call;
    if (begin(&call, CALL_Abort)) {
        on_comm(&call, comm);
        enter(&call);
        aborted(code);
    }
    return PMPI_Abort(comm, code);
}
