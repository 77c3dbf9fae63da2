/* The least that a collective of large arrays can do on two processes, without Python.

   Two processes share memory. What a process sends it copies into a staging buffer there, since the
   program may change it after the call; they meet; then each reads what the other one has staged.
   What a process keeps of its own values it copies, too. There are two staging buffers for each
   process, in turns, so that one barrier is enough. A new array is the staging buffer itself,
   which its receiver keeps; a given one is memory that is used again. All memory is mapped before.
   The program prints the seconds of a turn: the median of ten batches behind the first one.

   Usage: least_collectives NAME BYTES TURNS GIVEN; NAME is allreduce, broadcast, alltoall or scan,
   BYTES the size of a value, and GIVEN 1 if results go to the same arrays each time, otherwise 0. */

#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 10, SPINS = 100000 };
enum operation { ALLREDUCE, BROADCAST, ALLTOALL, SCAN, UNKNOWN };
static const char *const NAMES[] = {"allreduce", "broadcast", "alltoall", "scan"};
struct flag { _Alignas(128) _Atomic long turn; };

static struct flag *flags;
static long meetings;
static int pid, given;
static size_t nbytes;
static double *staged[2][2], *source, *target, *own_part;

static void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) { perror("mmap"); exit(1); }
    return memory;
}

static void barrier(void)
{
    atomic_store_explicit(&flags[pid].turn, ++meetings, memory_order_release);
    for (long spins = 0;
         atomic_load_explicit(&flags[1 - pid].turn, memory_order_acquire) < meetings; spins++)
        if (spins > SPINS) sched_yield(); /* the other one may need this core */
}

static const double *received(long turn)
{
    const double *there = staged[1 - pid][turn % 2];
    return given ? memcpy(target, there, nbytes) : there;
}

static const double *sum(long turn)
{
    const double *there = staged[1 - pid][turn % 2];
    for (size_t i = 0; i < nbytes / sizeof *source; i++) target[i] = source[i] + there[i];
    return target;
}

/* Call a collective; return the array with the last values that this process gets. */
static const double *collective(enum operation name, long turn)
{
    int is_root = pid == 0; /* in a scan: its values are its result, and go to the other one */
    if (name == ALLREDUCE || name == ALLTOALL || is_root)
        memcpy(staged[pid][turn % 2], source, nbytes);
    if (name == ALLTOALL) memcpy(own_part, source, nbytes);
    barrier();
    switch (name) {
    case ALLREDUCE: return sum(turn);
    case ALLTOALL: return received(turn);
    case BROADCAST:
        if (!is_root) return received(turn);
        return given ? source : memcpy(target, source, nbytes); /* the root gives its own array */
    default: return is_root ? memcpy(target, source, nbytes) : sum(turn);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
    enum operation name = ALLREDUCE;
    while (argc == 5 && name != UNKNOWN && strcmp(argv[1], NAMES[name])) name++;
    if (argc != 5 || name == UNKNOWN) return 2;
    nbytes = strtoull(argv[2], NULL, 10);
    long each = atol(argv[3]) / BATCHES, turn = 0;
    given = atoi(argv[4]);
    flags = shared(2 * sizeof *flags);
    for (int i = 0; i < 4; i++) staged[i / 2][i % 2] = shared(nbytes);
    pid = fork() == 0;
    source = shared(nbytes), target = shared(nbytes), own_part = shared(nbytes);
    for (size_t i = 0; i < nbytes / sizeof *source; i++) source[i] = i + 100.0 * pid;
    const double first[] = {100, 0, 100 - 100 * pid, 100 * pid}; /* of the values, by operation */
    double seconds[BATCHES + 1];
    for (int batch = 0; batch <= BATCHES; batch++) {
        const double *found = NULL;
        double began = now();
        for (long i = 0; i < each; i++) found = collective(name, ++turn);
        seconds[batch] = (now() - began) / each;
        if (!found || found[0] != first[name]) { fprintf(stderr, "wrong values\n"); exit(1); }
    }
    if (pid) return 0;
    wait(NULL);
    qsort(seconds + 1, BATCHES, sizeof *seconds, compare);
    printf("%.9g\n", (seconds[BATCHES / 2] + seconds[BATCHES / 2 + 1]) / 2);
    return 0;
}
