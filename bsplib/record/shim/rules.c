/* What each kind of call adds to its row; functions.py says which call has which rule.
 *
 * Arguments that MPI ignores must not be read here: counts and types at ranks that are no root, and
 * those of a buffer that is MPI_IN_PLACE. */

/* -- messages --------------------------------------------------------------------------------- */

static inline void sends(struct call *c, int dest, int tag, MPI_Count n, MPI_Datatype type)
{
    c->row->partner = code_of(dest);
    c->row->tag = tag;
    c->row->bytes_out = dest == MPI_PROC_NULL ? 0 : volume(n, type);
}

static inline void receives(struct call *c, int source, int tag)
{
    c->row->partner = code_of(source);
    c->row->tag = tag;
}

static inline void arrived(struct call *c, const MPI_Status *status)
{
    c->row->bytes_in = received(status);
    if (c->row->partner == ANY_SOURCE || c->row->tag == MPI_ANY_TAG)
        add_done(c, 0, code_of(status->MPI_SOURCE), status->MPI_TAG, c->row->bytes_in);
}

static void arrived_at_last(struct call *c, const MPI_Status *status)
{
    c->row->partner = code_of(status->MPI_SOURCE);
    c->row->tag = status->MPI_TAG;
    c->row->bytes_in = received(status);
    add_done(c, 0, c->row->partner, c->row->tag, c->row->bytes_in);
}

static void exchanged(struct call *c, const MPI_Status *status)
{
    c->row->bytes_in = received(status);
    add_done(c, 0, code_of(status->MPI_SOURCE), status->MPI_TAG, c->row->bytes_in);
}

static void found(struct call *c, int flag, const MPI_Status *status)
{
    if (!flag)
        polled(c);
    else if (c->row->partner == ANY_SOURCE || c->row->tag == MPI_ANY_TAG)
        add_done(c, 0, code_of(status->MPI_SOURCE), status->MPI_TAG, 0);
}

/* A message that was probed does not tell its communicator, so this is kept for the last ones. */
enum { MESSAGES = 64 };
static struct {
    MPI_Message message;
    struct comm *comm;
} probed_ones[MESSAGES];
static unsigned probed_count;

static void probed(struct call *c, MPI_Message message)
{
    probed_ones[probed_count % MESSAGES].message = message;
    probed_ones[probed_count++ % MESSAGES].comm = c->comm;
}

static void matched(struct call *c, MPI_Message message)
{
    for (unsigned i = 1; i <= MESSAGES && i <= probed_count; i++)
        if (probed_ones[(probed_count - i) % MESSAGES].message == message) {
            c->comm = probed_ones[(probed_count - i) % MESSAGES].comm;
            c->row->comm = c->comm ? c->comm->number : UNKNOWN;
            return;
        }
}

static inline void started(struct call *c, MPI_Request *handle, enum completes completes)
{
    struct request *request = new_request(*handle, completes);
    c->row->object = request ? request->number : 0;
}

/* A persistent request was made: its starts record what this call would. */
static void prepared(struct call *c, MPI_Request *handle, int start_call, enum completes completes)
{
    struct request *request = new_request(*handle, completes);
    if (!request)
        return;
    request->persistent = 1;
    request->number = 0;
    request->start = *c->row;
    request->start.call = start_call;
    c->row->bytes_out = c->row->bytes_in = 0;
}

/* A persistent request is started: its row is what was prepared. */
static void starts(struct call *c, MPI_Request handle)
{
    struct request *request = find_request(handle);
    c->row->call = CALL_Start;
    if (!request)
        return;
    struct event *row = c->row, *start = &request->start;
    row->call = start->call;
    request->number = ++last_number;
    row->object = request->number;
    row->comm = start->comm;
    row->partner = start->partner;
    row->tag = start->tag;
    row->bytes_out = start->bytes_out;
    row->bytes_in = start->bytes_in;
}

/* All requests of Startall but the first have rows that last for no time. */
static void more_starts(int count, MPI_Request requests[], int64_t at)
{
    struct call call;
    for (int i = 1; i < count && begin(&call, CALL_Start); i++) {
        starts(&call, requests[i]);
        call.row->enter = call.row->leave = at;
        added(EVENTS, sizeof *call.row);
        finish();
    }
}

/* -- completion ------------------------------------------------------------------------------- */

/* The handles before a call that completes requests, and statuses where the program ignores them.
 * Only the thread that is recorded comes here, and no call that is recorded is inside another. */
static struct {
    int count, room;
    MPI_Request *before;
    MPI_Status *statuses, *own;
} looked;

static void look(int count, MPI_Request requests[], MPI_Status **statuses)
{
    looked.count = 0;
    looked.statuses = NULL;
    if (count > looked.room) {
        MPI_Request *before = realloc(looked.before, count * sizeof *before);
        MPI_Status *own = realloc(looked.own, count * sizeof *own);
        looked.before = before ? before : looked.before;
        looked.own = own ? own : looked.own;
        if (!before || !own)
            return; /* what the call completes is not recorded */
        looked.room = count;
    }
    if (count <= 0)
        return;
    looked.count = count;
    memcpy(looked.before, requests, count * sizeof *requests);
    if (statuses && *statuses == MPI_STATUSES_IGNORE)
        *statuses = memset(looked.own, 0, count * sizeof *looked.own);
    looked.statuses = statuses ? *statuses : NULL;
}

static void completed(struct call *c, MPI_Request before, const MPI_Status *status)
{
    struct request *request = find_request(before);
    if (!request || !request->number)
        return;
    if (request->completes == MESSAGE_ARRIVES)
        add_done(c, request->number, code_of(status->MPI_SOURCE), status->MPI_TAG,
                 cancelled(status) ? 0 : received(status));
    else
        add_done(c, request->number, NOBODY, MPI_ANY_TAG, 0);
    if (request->persistent)
        request->number = 0;
    else
        forget_request(request);
}

/* After an error, what is completed has no handle any more. */
static void completed_one(struct call *c, int error, MPI_Request before, const MPI_Request *now,
                          const MPI_Status *status)
{
    if (error == MPI_SUCCESS || *now == MPI_REQUEST_NULL)
        completed(c, before, status);
}

static void completed_all(struct call *c, int error, const MPI_Request requests[])
{
    for (int i = 0; i < looked.count; i++)
        completed_one(c, error, looked.before[i], &requests[i], &looked.statuses[i]);
}

static void completed_at(struct call *c, int index, const MPI_Status *status)
{
    if (index >= 0 && index < looked.count) /* MPI_UNDEFINED is negative */
        completed(c, looked.before[index], status);
}

static void completed_some(struct call *c, int done, const int indices[])
{
    for (int i = 0; i < done; i++)
        completed_at(c, indices[i], &looked.statuses[i]);
}

/* The object of a call about one request is its number, so that its polls are told apart. */
static struct request *about(struct call *c, MPI_Request handle)
{
    struct request *request = find_request(handle);
    c->row->object = request ? request->number : 0;
    return request;
}

/* -- collectives ------------------------------------------------------------------------------ */

enum { IS_ROOT = 1, IS_OTHER = 2 }; /* the root of an intracommunicator is both */

static int role_of(struct call *c, int root)
{
    c->row->partner = code_of(root);
    if (!c->comm || root == MPI_PROC_NULL)
        return 0;
    if (c->comm->remote)
        return root == MPI_ROOT ? IS_ROOT : IS_OTHER;
    return root == c->comm->rank ? IS_ROOT | IS_OTHER : IS_OTHER;
}

static inline void moves(struct call *c, int64_t out, int64_t in)
{
    c->row->bytes_out = out;
    c->row->bytes_in = in;
}

static void broadcasts(struct call *c, int root, MPI_Count n, MPI_Datatype type)
{
    int role = role_of(c, root);
    if (role & IS_ROOT)
        c->row->bytes_out = volume(n, type);
    else if (role)
        c->row->bytes_in = volume(n, type);
}

/* Gather, and Scatter with the two directions exchanged. mine: buffer of a block. */
static void gathers(struct call *c, int to_root, int root, const void *mine, MPI_Count n,
                    MPI_Datatype type, MPI_Count root_n, MPI_Datatype root_type)
{
    int role = role_of(c, root), placed = mine == MPI_IN_PLACE;
    int64_t all = role & IS_ROOT ? peers(c->comm) * volume(root_n, root_type) : 0;
    int64_t block = !(role & IS_OTHER) ? 0 : placed ? volume(root_n, root_type) : volume(n, type);
    moves(c, to_root ? block : all, to_root ? all : block);
}

static void gathers_v(struct call *c, int to_root, int root, const void *mine, MPI_Count n,
                      MPI_Datatype type, struct counts root_n, MPI_Datatype root_type)
{
    int role = role_of(c, root), placed = mine == MPI_IN_PLACE;
    int64_t all = 0, block = 0;
    for (int i = 0; role & IS_ROOT && i < peers(c->comm); i++) {
        int64_t bytes = volume(count_at(root_n, i), root_type);
        all += bytes;
        if (placed && i == c->comm->rank)
            block = bytes;
    }
    if (role & IS_OTHER && !placed)
        block = volume(n, type);
    moves(c, to_root ? block : all, to_root ? all : block);
}

static void allgathers(struct call *c, const void *mine, MPI_Count n, MPI_Datatype type,
                       MPI_Count all_n, MPI_Datatype all_type)
{
    int64_t block = volume(all_n, all_type);
    moves(c, mine == MPI_IN_PLACE ? block : volume(n, type), peers(c->comm) * block);
}

static void allgathers_v(struct call *c, const void *mine, MPI_Count n, MPI_Datatype type,
                         struct counts all_n, MPI_Datatype all_type)
{
    int placed = mine == MPI_IN_PLACE;
    int64_t all = 0, block = placed ? 0 : volume(n, type);
    for (int i = 0; i < peers(c->comm); i++) {
        int64_t bytes = volume(count_at(all_n, i), all_type);
        all += bytes;
        if (placed && i == c->comm->rank)
            block = bytes;
    }
    moves(c, block, all);
}

static void all_to_all(struct call *c, const void *mine, MPI_Count n, MPI_Datatype type,
                       MPI_Count in_n, MPI_Datatype in_type)
{
    int64_t in = peers(c->comm) * volume(in_n, in_type);
    moves(c, mine == MPI_IN_PLACE ? in : peers(c->comm) * volume(n, type), in);
}

/* One type for all, or one for each. */
struct types {
    const MPI_Datatype *each;
    MPI_Datatype one;
};

static inline int64_t volume_at(struct counts counts, struct types types, int i)
{
    return volume(count_at(counts, i), types.each ? types.each[i] : types.one);
}

static void all_to_all_v(struct call *c, const void *mine, struct counts n, struct types types,
                         struct counts in_n, struct types in_types)
{
    int placed = mine == MPI_IN_PLACE;
    int64_t all_out = 0, all_in = 0;
    for (int i = 0; i < peers(c->comm); i++) {
        int64_t in = volume_at(in_n, in_types, i);
        int64_t out = placed ? in : volume_at(n, types, i);
        add_part(c, i, out, in);
        all_out += out;
        all_in += in;
    }
    moves(c, all_out, all_in);
}

static void reduces(struct call *c, int root, MPI_Count n, MPI_Datatype type)
{
    int role = role_of(c, root);
    moves(c, role & IS_OTHER ? volume(n, type) : 0, role & IS_ROOT ? volume(n, type) : 0);
}

static void combines(struct call *c, MPI_Count n, MPI_Datatype type)
{
    moves(c, volume(n, type), volume(n, type));
}

static void combines_earlier(struct call *c, MPI_Count n, MPI_Datatype type)
{
    combines(c, n, type);
    if (c->comm && c->comm->rank == 0)
        c->row->bytes_in = 0;
}

static void reduces_parts(struct call *c, struct counts n, MPI_Datatype type)
{
    int64_t all = 0, block = 0;
    for (int i = 0; c->comm && i < c->comm->size; i++) {
        int64_t bytes = volume(count_at(n, i), type);
        all += bytes;
        if (i == c->comm->rank)
            block = bytes;
    }
    moves(c, all, block);
}

static void reduces_blocks(struct call *c, MPI_Count n, MPI_Datatype type)
{
    moves(c, c->comm ? c->comm->size * volume(n, type) : 0, volume(n, type));
}

/* -- neighbourhoods --------------------------------------------------------------------------- */

static void to_neighbours(struct call *c, struct counts n, struct types types, int step)
{
    int64_t all = 0;
    for (int i = 0; c->comm && i < c->comm->destinations_count; i++) {
        int64_t bytes = c->comm->destinations[i] < 0 ? 0 : volume_at(n, types, i * step);
        add_part(c, c->comm->destinations[i], bytes, 0);
        all += bytes;
    }
    c->row->bytes_out = all;
}

static void from_neighbours(struct call *c, struct counts n, struct types types, int step)
{
    int64_t all = 0;
    for (int i = 0; c->comm && i < c->comm->sources_count; i++) {
        int64_t bytes = c->comm->sources[i] < 0 ? 0 : volume_at(n, types, i * step);
        add_part(c, c->comm->sources[i], 0, bytes);
        all += bytes;
    }
    c->row->bytes_in = all;
}

/* -- communicators ---------------------------------------------------------------------------- */

static void makes(struct call *c, MPI_Comm *made, enum made by)
{
    if (c->comm && by == BY_ALL)
        c->comm->children++;
    if (*made != MPI_COMM_NULL)
        new_comm(*made, c->comm, by);
}

static void copies(struct call *c, MPI_Comm *made, MPI_Request *request)
{
    started(c, request, NOTHING_ARRIVES);
    if (!c->comm)
        return;
    c->comm->children++;
    new_copy(*made, c->comm);
}

static void spawned(void)
{
    static int times;
    if (!times++ && my_rank == 0)
        say("the programs that MPI_Comm_spawn starts are not recorded");
}

/* -- windows ---------------------------------------------------------------------------------- */

static struct window *on_window(struct call *c, MPI_Win handle)
{
    struct window *window = find_window(handle);
    if (window) {
        c->row->object = window->number;
        c->comm = window->comm;
        c->row->comm = window->comm ? window->comm->number : UNKNOWN;
    }
    return window;
}

static void opened(struct call *c, MPI_Win handle)
{
    struct window *window = new_window(handle, c->comm);
    c->row->object = window ? window->number : 0;
}

static void on_target(struct call *c, MPI_Win handle, int rank)
{
    on_window(c, handle);
    c->row->partner = code_of(rank);
}

static void accesses(struct call *c, MPI_Win handle, int rank, int64_t out, int64_t in)
{
    on_target(c, handle, rank);
    if (rank >= 0)
        moves(c, out, in);
}
