/* The calls that need more than a rule: begin and end, and those that complete requests. */

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
    leave(&call, MPI_SUCCESS);
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
    leave(&call, error);
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

/* -- persistent requests ---------------------------------------------------------------------- */

static void start_row(struct call *call, MPI_Request handle)
{
    struct request *request = find_request(handle);
    if (!request)
        return;
    struct event *row = call->row, *start = &request->start;
    request->number = ++last_number;
    row->object = request->number;
    row->flags |= start->flags;
    row->comm = start->comm;
    row->partner = start->partner;
    row->tag = start->tag;
    row->bytes_out = start->bytes_out;
    row->bytes_in = start->bytes_in;
}

int PMPI_Start(MPI_Request *);
int PMPI_Startall(int, MPI_Request[]);

int MPI_Start(MPI_Request *request)
{
    struct call call;
    if (!begin(&call, CALL_Start))
        return PMPI_Start(request);
    start_row(&call, *request);
    enter(&call);
    int error = PMPI_Start(request);
    leave(&call, error);
    finish();
    return error;
}

int MPI_Startall(int count, MPI_Request requests[])
{
    struct call call;
    if (!begin(&call, CALL_Start))
        return PMPI_Startall(count, requests);
    if (count > 0)
        start_row(&call, requests[0]);
    enter(&call);
    int error = PMPI_Startall(count, requests);
    leave(&call, error);
    int64_t at = call.row->leave;
    finish();
    for (int i = 1; i < count && begin(&call, CALL_Start); i++) {
        start_row(&call, requests[i]);
        call.row->enter = call.row->leave = at;
        added(EVENTS, sizeof *call.row);
        finish();
    }
    return error;
}

/* -- completion ------------------------------------------------------------------------------- */

enum { ON_STACK = 64 };

/* The handles before a call that completes requests, and statuses where the program ignores them. */
struct waiting {
    int count;
    MPI_Request *before, before_here[ON_STACK];
    MPI_Status *statuses, statuses_here[ON_STACK], *own;
};

static int look(struct waiting *w, int count, MPI_Request requests[], MPI_Status *statuses)
{
    int many = count > ON_STACK;
    w->count = count < 0 ? 0 : count;
    w->before = many ? malloc(count * sizeof *w->before) : w->before_here;
    w->own = NULL;
    w->statuses = statuses;
    if (statuses == MPI_STATUSES_IGNORE)
        w->statuses = w->own = many ? calloc(count, sizeof *w->own) : w->statuses_here;
    if (w->own && !many)
        memset(w->own, 0, w->count * sizeof *w->own);
    if (!w->before || (many && !w->statuses)) {
        if (many) {
            free(w->before);
            free(w->own);
        }
        return 0;
    }
    if (w->count)
        memcpy(w->before, requests, w->count * sizeof *w->before);
    return 1;
}

static void looked(struct waiting *w)
{
    if (w->count > ON_STACK) {
        free(w->before);
        free(w->own);
    }
}

static void completed(struct call *call, MPI_Request before, const MPI_Status *status)
{
    struct request *request = find_request(before);
    if (!request || !request->number)
        return;
    call->row->flags |= COMPLETES;
    if (request->completes == MESSAGE_ARRIVES)
        add_done(call, request->number, code_of(status->MPI_SOURCE), status->MPI_TAG,
                 cancelled(status) ? 0 : received(status));
    else
        add_done(call, request->number, NOBODY, MPI_ANY_TAG,
                 request->completes == DATA_ARRIVE ? received(status) : 0);
    if (request->persistent)
        request->number = 0;
    else
        forget_request(request);
}

/* After an error, what is completed has no handle any more. */
static void completed_all(struct call *call, struct waiting *w, MPI_Request requests[], int error)
{
    for (int i = 0; i < w->count; i++)
        if (error == MPI_SUCCESS || requests[i] == MPI_REQUEST_NULL)
            completed(call, w->before[i], &w->statuses[i]);
}

/* The object of a call about one request is its number, so that its polls are told apart. */
static void about(struct call *call, MPI_Request handle)
{
    struct request *request = find_request(handle);
    call->row->object = request ? request->number : 0;
}

int PMPI_Wait(MPI_Request *, MPI_Status *);
int PMPI_Test(MPI_Request *, int *, MPI_Status *);
int PMPI_Waitall(int, MPI_Request[], MPI_Status[]);
int PMPI_Testall(int, MPI_Request[], int *, MPI_Status[]);
int PMPI_Waitany(int, MPI_Request[], int *, MPI_Status *);
int PMPI_Testany(int, MPI_Request[], int *, int *, MPI_Status *);
int PMPI_Waitsome(int, MPI_Request[], int *, int[], MPI_Status[]);
int PMPI_Testsome(int, MPI_Request[], int *, int[], MPI_Status[]);
int PMPI_Request_free(MPI_Request *);
int PMPI_Cancel(MPI_Request *);

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct call call;
    MPI_Request before = *request;
    if (!begin(&call, CALL_Wait))
        return PMPI_Wait(request, status);
    status = status_of(&call, status);
    about(&call, before);
    enter(&call);
    int error = PMPI_Wait(request, status);
    leave(&call, error);
    if (error == MPI_SUCCESS || *request == MPI_REQUEST_NULL)
        completed(&call, before, status);
    finish();
    return error;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct call call;
    MPI_Request before = *request;
    if (!begin(&call, CALL_Test))
        return PMPI_Test(request, flag, status);
    status = status_of(&call, status);
    about(&call, before);
    enter(&call);
    int error = PMPI_Test(request, flag, status);
    leave(&call, error);
    if (error == MPI_SUCCESS && !*flag)
        polled(&call);
    else if (error == MPI_SUCCESS || *request == MPI_REQUEST_NULL)
        completed(&call, before, status);
    finish();
    return error;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct call call;
    struct waiting w;
    if (!look(&w, count, requests, statuses))
        return PMPI_Waitall(count, requests, statuses);
    int error;
    if (begin(&call, CALL_Waitall)) {
        enter(&call);
        error = PMPI_Waitall(count, requests, w.statuses);
        leave(&call, error);
        completed_all(&call, &w, requests, error);
        finish();
    } else {
        error = PMPI_Waitall(count, requests, statuses);
    }
    looked(&w);
    return error;
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct call call;
    struct waiting w;
    if (!look(&w, count, requests, statuses))
        return PMPI_Testall(count, requests, flag, statuses);
    int error;
    if (begin(&call, CALL_Testall)) {
        enter(&call);
        error = PMPI_Testall(count, requests, flag, w.statuses);
        leave(&call, error);
        if (error == MPI_SUCCESS && !*flag)
            polled(&call);
        else
            completed_all(&call, &w, requests, error);
        finish();
    } else {
        error = PMPI_Testall(count, requests, flag, statuses);
    }
    looked(&w);
    return error;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct call call;
    struct waiting w;
    if (!look(&w, count, requests, &call.status))
        return PMPI_Waitany(count, requests, index, status);
    int error;
    if (begin(&call, CALL_Waitany)) {
        status = status_of(&call, status);
        enter(&call);
        *index = MPI_UNDEFINED;
        error = PMPI_Waitany(count, requests, index, status);
        leave(&call, error);
        if (*index >= 0 && *index < count)
            completed(&call, w.before[*index], status);
        finish();
    } else {
        error = PMPI_Waitany(count, requests, index, status);
    }
    looked(&w);
    return error;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct call call;
    struct waiting w;
    if (!look(&w, count, requests, &call.status))
        return PMPI_Testany(count, requests, index, flag, status);
    int error;
    if (begin(&call, CALL_Testany)) {
        status = status_of(&call, status);
        enter(&call);
        *index = MPI_UNDEFINED;
        error = PMPI_Testany(count, requests, index, flag, status);
        leave(&call, error);
        if (error == MPI_SUCCESS && !*flag)
            polled(&call);
        else if (*index >= 0 && *index < count)
            completed(&call, w.before[*index], status);
        finish();
    } else {
        error = PMPI_Testany(count, requests, index, flag, status);
    }
    looked(&w);
    return error;
}

typedef int some_call(int, MPI_Request[], int *, int[], MPI_Status[]);

static int some(int number, some_call *made, int count, MPI_Request requests[], int *done,
                int indices[], MPI_Status statuses[])
{
    struct call call;
    struct waiting w;
    if (!look(&w, count, requests, statuses))
        return made(count, requests, done, indices, statuses);
    int error;
    if (begin(&call, number)) {
        enter(&call);
        *done = MPI_UNDEFINED;
        error = made(count, requests, done, indices, w.statuses);
        leave(&call, error);
        if (error == MPI_SUCCESS && *done == 0)
            polled(&call);
        for (int i = 0; i < *done; i++) /* MPI_UNDEFINED is negative */
            completed(&call, w.before[indices[i]], &w.statuses[i]);
        finish();
    } else {
        error = made(count, requests, done, indices, statuses);
    }
    looked(&w);
    return error;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                 MPI_Status statuses[])
{
    return some(CALL_Waitsome, PMPI_Waitsome, count, requests, done, indices, statuses);
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                 MPI_Status statuses[])
{
    return some(CALL_Testsome, PMPI_Testsome, count, requests, done, indices, statuses);
}

int MPI_Request_free(MPI_Request *request)
{
    struct call call;
    MPI_Request before = *request;
    if (!begin(&call, CALL_Request_free))
        return PMPI_Request_free(request);
    about(&call, before);
    enter(&call);
    int error = PMPI_Request_free(request);
    leave(&call, error);
    struct request *known = find_request(before);
    if (error == MPI_SUCCESS && known)
        forget_request(known);
    finish();
    return error;
}

int MPI_Cancel(MPI_Request *request)
{
    struct call call;
    if (!begin(&call, CALL_Cancel))
        return PMPI_Cancel(request);
    about(&call, *request);
    enter(&call);
    int error = PMPI_Cancel(request);
    leave(&call, error);
    finish();
    return error;
}
