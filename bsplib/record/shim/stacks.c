/* Which line of the Python program makes a call.
 *
 * mpi4py releases the interpreter's lock around most calls of MPI. To take it again for each call
 * would wait for other threads of the program, so the shim reads the frames without it. This is
 * safe: the frames are those of the thread itself, which is inside the call and cannot change
 * them, and only addresses are read, no counts of references are changed. The address of the current
 * instruction of each frame, from the innermost outwards, identifies a call stack; Python keeps
 * references to the code of every stack that it has named, so addresses are not used again. A stack
 * that is new is named by Python code, which takes the lock.
 *
 * Where frames are kept differs by version of Python. The Python side knows the offsets, and
 * compares what they lead to with what Python says before it passes them (frames.py). Without them,
 * Python is asked in every call, which takes some microseconds. */

enum { MOST_FRAMES = 1000 };

static struct {
    void *(*thread_state)(void);
    int state, frame, previous, instruction; /* offsets; state < 0: not known */
    int by_frame;                            /* the state has the frame itself */
    int (*name_stack)(void);                 /* Python: the number of the stack, or -1 */
} python = {.state = -1};

static struct {
    uint64_t *keys;
    int *numbers;
    size_t room, count;
} named;

static inline uint64_t stack_key(void)
{
    char *state = python.thread_state();
    if (!state)
        return 0;
    char *frame = *(char **)(state + python.state);
    if (!python.by_frame)
        frame = *(char **)(frame + python.frame);
    uint64_t key = 0x243F6A8885A308D3u;
    for (int count = 0; frame && count < MOST_FRAMES; count++) {
        key = (key ^ *(uint64_t *)(frame + python.instruction)) * 0x9E3779B97F4A7C15u;
        key ^= key >> 32;
        frame = *(char **)(frame + python.previous);
    }
    return key ? key : 1;
}

static inline size_t slot_of(uint64_t key)
{
    size_t slot = key & (named.room - 1);
    while (named.keys[slot] && named.keys[slot] != key)
        slot = (slot + 1) & (named.room - 1);
    return slot;
}

static int widen_names(void)
{
    uint64_t *keys = named.keys;
    int *numbers = named.numbers;
    size_t room = named.room;
    size_t wider = room ? 2 * room : 256;
    uint64_t *new_keys = calloc(wider, sizeof *new_keys);
    int *new_numbers = calloc(wider, sizeof *new_numbers);
    if (!new_keys || !new_numbers) {
        free(new_keys);
        free(new_numbers);
        return 0;
    }
    named.keys = new_keys;
    named.numbers = new_numbers;
    named.room = wider;
    for (size_t i = 0; i < room; i++)
        if (keys[i]) {
            size_t slot = slot_of(keys[i]);
            named.keys[slot] = keys[i];
            named.numbers[slot] = numbers[i];
        }
    free(keys);
    free(numbers);
    return 1;
}

/* Return the number of the stack from which this call comes; -1 if it cannot be told. */
static inline int current_stack(void)
{
    if (!python.name_stack)
        return -1;
    if (python.state < 0)
        return python.name_stack();
    uint64_t key = stack_key();
    if (!key)
        return -1; /* a thread that Python does not know */
    if (named.room) {
        size_t slot = slot_of(key);
        if (named.keys[slot])
            return named.numbers[slot];
    }
    if (2 * (named.count + 1) > named.room && !widen_names())
        return -1;
    int number = python.name_stack();
    if (number >= 0) {
        size_t slot = slot_of(key);
        named.keys[slot] = key;
        named.numbers[slot] = number;
        named.count++;
    }
    return number;
}
