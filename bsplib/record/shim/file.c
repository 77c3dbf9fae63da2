/* The file of a rank, in the form that bsplib/record/events.py describes.
 *
 * Each chunk of the file is mapped while it is filled, so what a call has recorded is in the file
 * as soon as it is in memory, and a rank can be killed at any time. Room on the disk is
 * reserved before a chunk is mapped: writing to a mapped page that has no room on a full disk
 * would end the program by a signal. */

enum { LINES, EVENTS, PARTS, DONES, KINDS };
enum { HEAD_BYTES = 16, STATE_AT = 8, PAGE = 4096 };
enum state { RUNNING, ENDED, STOPPED };

static const char MAGIC[HEAD_BYTES] = "bsprank\x01";
static const size_t ROOM[KINDS] = {16384, 131072, 16384, 32768};

struct head {
    char mark[4];
    uint32_t kind;
    uint64_t room, used;
};

static struct chunk {
    char *rows;
    struct head *head;
    void *map;
    size_t mapped;
} chunks[KINDS];

static int file = -1;
static off_t file_end;
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *text)
{
    /* One write, so that sentences of several ranks are not mixed. */
    char line[1200];
    int length = snprintf(line, sizeof line, "bsp record: %s\n", text);
    if (length > 0 && write(2, line, length < (int)sizeof line ? length : (int)sizeof line - 1) < 0)
        return;
}

static void mark_state(char state)
{
    if (file >= 0 && pwrite(file, &state, 1, STATE_AT) != 1)
        return; /* the reader then takes the rank for one that was killed */
}

static void stop_recording(int error)
{
    char text[300];
    snprintf(text, sizeof text, "rank %d is not recorded any further: %s; the program goes on",
             my_rank, strerror(error));
    say(text);
    mark_state(STOPPED);
    recording = 0;
}

static void unmap(struct chunk *chunk)
{
    if (chunk->map)
        munmap(chunk->map, chunk->mapped);
    *chunk = (struct chunk){0};
}

/* Begin a chunk with room for at least ``least`` bytes; return whether there is one. */
static int new_chunk(int kind, size_t least)
{
    struct chunk *chunk = &chunks[kind];
    size_t room = least > ROOM[kind] ? least : ROOM[kind];
    unmap(chunk);
    if (file < 0)
        return 0;
    off_t from = file_end, aligned = from & ~(off_t)(PAGE - 1);
    size_t whole = sizeof(struct head) + room;
    int error = posix_fallocate(file, from, whole);
    if (!error) {
        chunk->mapped = from - aligned + whole;
        chunk->map = mmap(NULL, chunk->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, aligned);
        if (chunk->map == MAP_FAILED)
            error = errno;
    }
    if (error) {
        *chunk = (struct chunk){0};
        if (recording)
            stop_recording(error);
        return 0;
    }
    file_end = from + whole;
    chunk->head = (struct head *)((char *)chunk->map + (from - aligned));
    chunk->rows = (char *)(chunk->head + 1);
    *chunk->head = (struct head){{'b', 's', 'p', 'c'}, kind, room, 0};
    return 1;
}

/* Return room for a row, NULL if there is none. The caller fills it and then calls `added`. */
static inline void *place(int kind, size_t size)
{
    struct chunk *chunk = &chunks[kind];
    if (!chunk->head || chunk->head->used + size > chunk->head->room) {
        pthread_mutex_lock(&growing);
        int there = new_chunk(kind, size);
        pthread_mutex_unlock(&growing);
        if (!there)
            return NULL;
    }
    return chunk->rows + chunk->head->used;
}

static inline void added(int kind, size_t size)
{
    chunks[kind].head->used += size;
}

/* Add a line. The threads of Python may do this, too. */
static void add_line(const char *text, size_t length)
{
    struct chunk *chunk = &chunks[LINES];
    pthread_mutex_lock(&growing);
    if ((chunk->head && chunk->head->used + length <= chunk->head->room) ||
        new_chunk(LINES, length)) {
        memcpy(chunk->rows + chunk->head->used, text, length);
        chunk->head->used += length;
    }
    pthread_mutex_unlock(&growing);
}

/* Create the file; return 0 or the number of the error. */
static int open_file(const char *path)
{
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return errno;
    if (write(file, MAGIC, HEAD_BYTES) != HEAD_BYTES) {
        int error = errno ? errno : ENOSPC;
        close(file);
        file = -1;
        return error;
    }
    file_end = HEAD_BYTES;
    return 0;
}

/* Close the file, without the room that the last chunk did not need. */
static void close_file(void)
{
    if (file < 0)
        return;
    for (int kind = 0; kind < KINDS; kind++)
        unmap(&chunks[kind]);
    if (recording != 0)
        mark_state(ENDED);
    close(file);
    file = -1;
}

/* -- lines of JSON that the shim itself writes ------------------------------------------------ */

struct text {
    char *at;
    size_t length, room;
};

static void add_text(struct text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *more;
    int length = vasprintf(&more, format, values);
    va_end(values);
    if (length < 0)
        return;
    if (text->length + length + 1 > text->room) {
        size_t room = 2 * (text->length + length + 1);
        char *wider = realloc(text->at, room);
        if (!wider) {
            free(more);
            return;
        }
        text->at = wider;
        text->room = room;
    }
    memcpy(text->at + text->length, more, length + 1);
    text->length += length;
    free(more);
}

static void add_quoted(struct text *text, const char *value)
{
    add_text(text, "\"");
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            add_text(text, "\\%c", *value);
        else
            add_text(text, (unsigned char)*value < ' ' ? "\\u%04x" : "%c", (unsigned char)*value);
    }
    add_text(text, "\"");
}

static void add_numbers(struct text *text, const char *name, const int *values, int count)
{
    add_text(text, "\"%s\":[", name);
    for (int i = 0; i < count; i++)
        add_text(text, i ? ",%d" : "%d", values[i]);
    add_text(text, "]");
}

static void write_text(struct text *text)
{
    add_text(text, "\n");
    if (text->at)
        add_line(text->at, text->length);
    free(text->at);
    *text = (struct text){0};
}
