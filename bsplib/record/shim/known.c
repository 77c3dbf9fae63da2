/* Communicators, windows and requests of this rank, by their handles. */

struct comm {
    MPI_Comm handle;
    int number, parent, ordinal;
    int size, rank, remote;      /* remote: size of the remote group; 0 if it is no intercommunicator */
    int children;
    int *members, *others;       /* ranks in COMM_WORLD */
    int sources_count, destinations_count;
    int *sources, *destinations; /* neighbours of a topology */
    int freed;
};

static struct comm **comms;
static int comms_count, comms_room;
static struct comm *last_comm;
static MPI_Group world_group;

static inline int code_of(int rank)
{
    if (rank >= 0)
        return rank;
    if (rank == MPI_PROC_NULL)
        return PROC_NULL;
    if (rank == MPI_ANY_SOURCE)
        return ANY_SOURCE;
    return rank == MPI_ROOT ? ROOT : NOBODY;
}

static int *world_ranks(MPI_Comm handle, int size, int (*group_of)(MPI_Comm, MPI_Group *))
{
    int *local = malloc(size * sizeof(int) + 1), *world = malloc(size * sizeof(int) + 1);
    MPI_Group group;
    for (int i = 0; i < size; i++)
        local[i] = i;
    group_of(handle, &group);
    PMPI_Group_translate_ranks(group, size, local, world_group, world);
    PMPI_Group_free(&group);
    for (int i = 0; i < size; i++)
        if (world[i] == MPI_UNDEFINED)
            world[i] = -1;
    free(local);
    return world;
}

static void find_neighbours(struct comm *comm)
{
    int topology = MPI_UNDEFINED, weighted;
    if (PMPI_Topo_test(comm->handle, &topology) != MPI_SUCCESS)
        return;
    if (topology == MPI_CART) {
        int dimensions = 0;
        PMPI_Cartdim_get(comm->handle, &dimensions);
        comm->sources_count = comm->destinations_count = 2 * dimensions;
        comm->sources = malloc(2 * dimensions * sizeof(int) + 1);
        for (int i = 0; i < dimensions; i++)
            PMPI_Cart_shift(comm->handle, i, 1, &comm->sources[2 * i], &comm->sources[2 * i + 1]);
        comm->destinations = comm->sources;
    } else if (topology == MPI_GRAPH) {
        int count = 0;
        PMPI_Graph_neighbors_count(comm->handle, comm->rank, &count);
        comm->sources_count = comm->destinations_count = count;
        comm->sources = comm->destinations = malloc(count * sizeof(int) + 1);
        PMPI_Graph_neighbors(comm->handle, comm->rank, count, comm->sources);
    } else if (topology == MPI_DIST_GRAPH) {
        int in = 0, out = 0;
        PMPI_Dist_graph_neighbors_count(comm->handle, &in, &out, &weighted);
        comm->sources_count = in;
        comm->destinations_count = out;
        comm->sources = malloc(in * sizeof(int) + 1);
        comm->destinations = malloc(out * sizeof(int) + 1);
        int *weights = malloc((in + out) * sizeof(int) + 1);
        PMPI_Dist_graph_neighbors(comm->handle, in, comm->sources, weights, out,
                                  comm->destinations, weights + in);
        free(weights);
    }
    for (int i = 0; i < comm->sources_count; i++)
        comm->sources[i] = code_of(comm->sources[i]);
    for (int i = 0; comm->destinations != comm->sources && i < comm->destinations_count; i++)
        comm->destinations[i] = code_of(comm->destinations[i]);
}

static int same_groups(const struct comm *a, const struct comm *b)
{
    if (a->remote != b->remote || a->size != b->size)
        return 0;
    return !memcmp(a->members, b->members, a->size * sizeof(int)) &&
           (!a->remote || !memcmp(a->others, b->others, a->remote * sizeof(int)));
}

/* Number the communicators that not all processes of the parent have made by their members. */
static int ordinal_among_same(const struct comm *comm)
{
    int earlier = 0;
    for (int i = 0; i < comms_count; i++)
        earlier += comms[i]->ordinal < 0 && comms[i]->parent == comm->parent &&
                   same_groups(comms[i], comm);
    return -1 - earlier;
}

static void write_comm(const struct comm *comm)
{
    struct text text = {0};
    add_text(&text, "[\"comm\",{\"number\":%d,\"parent\":%d,\"ordinal\":%d,", comm->number,
             comm->parent, comm->ordinal);
    add_numbers(&text, "members", comm->members, comm->size);
    add_text(&text, ",");
    add_numbers(&text, "remote", comm->others, comm->remote);
    add_text(&text, "}]");
    write_text(&text);
}

enum made { BY_ALL, BY_SOME };

static struct comm *room_for_comm(void)
{
    if (comms_count == comms_room) {
        int room = comms_room ? 2 * comms_room : 16;
        struct comm **wider = realloc(comms, room * sizeof *comms);
        if (!wider)
            return NULL;
        comms = wider;
        comms_room = room;
    }
    return calloc(1, sizeof(struct comm));
}

/* Note a communicator that is being made as a copy: MPI cannot be asked about it yet. */
static void new_copy(MPI_Comm handle, const struct comm *parent)
{
    struct comm *comm = room_for_comm();
    if (!comm)
        return;
    *comm = *parent;
    comm->handle = handle;
    comm->number = comms_count;
    comm->children = 0;
    comm->parent = parent->remote ? UNKNOWN : parent->number;
    comm->ordinal = parent->remote ? ordinal_among_same(comm) : parent->children - 1;
    comms[comms_count++] = comm;
    write_comm(comm);
}

/* Note a communicator. made: whether all processes of the parent took part in making it. */
static struct comm *new_comm(MPI_Comm handle, struct comm *parent, enum made made)
{
    struct comm *comm = room_for_comm();
    if (!comm)
        return NULL;
    int inter = 0;
    comm->handle = handle;
    comm->number = comms_count;
    comm->parent = parent ? parent->number : UNKNOWN;
    comm->ordinal = -1;
    PMPI_Comm_size(handle, &comm->size);
    PMPI_Comm_rank(handle, &comm->rank);
    PMPI_Comm_test_inter(handle, &inter);
    comm->members = world_ranks(handle, comm->size, PMPI_Comm_group);
    if (inter) {
        PMPI_Comm_remote_size(handle, &comm->remote);
        comm->others = world_ranks(handle, comm->remote, PMPI_Comm_remote_group);
        comm->parent = UNKNOWN; /* its two sides may have been made from different ones */
    } else if (comms_count < 2) {
        comm->ordinal = 0;
    } else {
        find_neighbours(comm);
    }
    if (comms_count >= 2)
        comm->ordinal = parent && made == BY_ALL && !inter ? parent->children - 1
                                                           : ordinal_among_same(comm);
    comms[comms_count++] = comm;
    write_comm(comm);
    return comm;
}

/* A communicator by its handle: NULL for none. One that was made where the shim did not see it
 * is noted when it is used first. */
static struct comm *find_comm(MPI_Comm handle)
{
    if (last_comm && last_comm->handle == handle && !last_comm->freed)
        return last_comm;
    if (handle == MPI_COMM_NULL)
        return NULL;
    for (int i = comms_count - 1; i >= 0; i--)
        if (comms[i]->handle == handle && !comms[i]->freed)
            return last_comm = comms[i];
    return last_comm = new_comm(handle, NULL, BY_SOME);
}

static inline int peers(const struct comm *comm)
{
    return !comm ? 0 : comm->remote ? comm->remote : comm->size;
}

/* -- windows ---------------------------------------------------------------------------------- */

struct window {
    MPI_Win handle;
    int64_t number;
    struct comm *comm;
    struct window *next;
};

static struct window *windows;
static int64_t last_number;

static struct window *new_window(MPI_Win handle, struct comm *comm)
{
    struct window *window = malloc(sizeof *window);
    if (!window)
        return NULL;
    *window = (struct window){handle, ++last_number, comm, windows};
    return windows = window;
}

static struct window *find_window(MPI_Win handle)
{
    struct window *window = windows;
    while (window && window->handle != handle)
        window = window->next;
    return window;
}

static void forget(struct window *gone)
{
    struct window **at = &windows;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    free(gone);
}

/* -- requests --------------------------------------------------------------------------------- */

enum completes { NOTHING_ARRIVES, MESSAGE_ARRIVES };

struct request {
    MPI_Request handle;
    enum completes completes;
    int persistent;
    int64_t number; /* 0: persistent and not started */
    struct event start; /* of a persistent one: what each start records */
    struct request *next;
};

enum { BUCKETS = 4096 };
static struct bucket {
    struct request *first, **end;
} buckets[BUCKETS];
static struct request *spare_requests;

static inline struct bucket *bucket_of(MPI_Request handle)
{
    uint64_t key = (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u;
    return &buckets[key >> 52];
}

/* Note a request. MPICH gives all sends that are complete at once the same handle, so there may be
 * several with one handle; each completion then takes the oldest. */
static struct request *new_request(MPI_Request handle, enum completes completes)
{
    struct request *request = spare_requests;
    if (request)
        spare_requests = request->next;
    else if (!(request = malloc(sizeof *request)))
        return NULL;
    request->handle = handle;
    request->completes = completes;
    request->persistent = 0;
    request->number = ++last_number;
    request->next = NULL;
    struct bucket *bucket = bucket_of(handle);
    *(bucket->first ? bucket->end : &bucket->first) = request;
    bucket->end = &request->next;
    return request;
}

static struct request *find_request(MPI_Request handle)
{
    struct request *request = handle == MPI_REQUEST_NULL ? NULL : bucket_of(handle)->first;
    while (request && request->handle != handle)
        request = request->next;
    return request;
}

static void forget_request(struct request *gone)
{
    struct bucket *bucket = bucket_of(gone->handle);
    for (struct request **at = &bucket->first; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            if (bucket->end == &gone->next)
                bucket->end = at;
            gone->next = spare_requests;
            spare_requests = gone;
            return;
        }
}
