/* Rows and constants of bsplib/record/events.py; a test compares the sizes. CALL_... come from
 * compiler.py. */

struct __attribute__((packed)) event {
    uint16_t call;
    int32_t comm, stack, partner, tag;
    int64_t object, bytes_out, bytes_in, enter, leave, cpu, cpu_leave, ready, ready_leave;
    int64_t pickling, pickled_bytes;
};

struct __attribute__((packed)) part {
    int64_t event;
    int32_t partner;
    int64_t bytes_out, bytes_in;
};

struct __attribute__((packed)) done {
    int64_t event, request;
    int32_t source, tag;
    int64_t bytes_in;
};

enum { NOBODY = -1, PROC_NULL = -2, ANY_SOURCE = -3, ROOT = -4 };
enum { UNKNOWN = -1, WORLD = 0, SELF = 1, NOT_READ = -1 };
enum { READ_AFTER_NS = 30000, POLL_GAP_NS = 10000 };

static volatile int recording;
static int my_rank = -1;
