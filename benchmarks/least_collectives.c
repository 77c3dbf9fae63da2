/* The least that a collective of large arrays can do on processes of one computer, without Python.

   The processes share memory. What a process sends it copies into a staging buffer there, since the
   program may change it after the call; they meet; then each reads what the others have staged.
   What a process keeps of its own values it copies, too. There are two staging buffers for each
   process, in turns, so that one barrier is enough. A new array is the staging buffer itself,
   which its receiver keeps if it is the only one; a given one is memory that is used again. All
   memory is mapped before. An allreduce adds whole values in one superstep, which the model says is
   the least for two processes; in halves and two supersteps it takes a tenth less CPU time.
   The program prints the seconds of a turn: the median of ten batches behind the first one.

   Usage: least_collectives NAME BYTES TURNS GIVEN PROCESSES; NAME is allreduce, broadcast, alltoall,
   scan or allgather, BYTES the size of a value, and GIVEN 1 if results go to the same arrays each
   time, otherwise 0. There are two processes, or up to eight in an allgather. */

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

enum { BATCHES = 10, SPINS = 100000, MOST = 8 };
enum operation { ALLREDUCE, BROADCAST, ALLTOALL, SCAN, ALLGATHER, UNKNOWN };
static const char *const NAMES[] = {"allreduce", "broadcast", "alltoall", "scan", "allgather"};
struct flag { _Alignas(128) _Atomic long turn; };

static struct flag *flags;
static long meetings;
static int pid, nprocs, given;
static size_t nbytes;
static double *staged[MOST][2], *source, *target, *own_part;

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
    for (int other = 0; other < nprocs; other++)
        for (long spins = 0;
             atomic_load_explicit(&flags[other].turn, memory_order_acquire) < meetings; spins++)
            if (spins > SPINS || nprocs > 2) sched_yield(); /* another one may need this core */
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

/* Copy the values of all to the places of their processes; the only receiver keeps them. */
static const double *gathered(long turn)
{
    size_t length = nbytes / sizeof *source;
    if (nprocs == 2 && !given) {
        memcpy(target + pid * length, source, nbytes);
        return pid ? staged[0][turn % 2] : target;
    }
    for (int other = 0; other < nprocs; other++)
        memcpy(target + other * length, other == pid ? source : staged[other][turn % 2], nbytes);
    return target;
}

/* Call a collective; return the array with the last values that this process gets. */
static const double *collective(enum operation name, long turn)
{
    int is_root = pid == 0; /* in a scan: its values are its result, and go to the other one */
    if (is_root || (name != BROADCAST && name != SCAN))
        memcpy(staged[pid][turn % 2], source, nbytes);
    if (name == ALLTOALL) memcpy(own_part, source, nbytes);
    barrier();
    switch (name) {
    case ALLREDUCE: return sum(turn);
    case ALLTOALL: return received(turn);
    case ALLGATHER: return gathered(turn);
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
    while (argc == 6 && name != UNKNOWN && strcmp(argv[1], NAMES[name])) name++;
    if (argc != 6 || name == UNKNOWN) return 2;
    nbytes = strtoull(argv[2], NULL, 10);
    long each = atol(argv[3]) / BATCHES, turn = 0;
    given = atoi(argv[4]), nprocs = atoi(argv[5]);
    if (nprocs < 2 || nprocs > (name == ALLGATHER ? MOST : 2)) return 2;
    flags = shared(nprocs * sizeof *flags);
    for (int i = 0; i < 2 * nprocs; i++) staged[i / 2][i % 2] = shared(nbytes);
    for (int other = 1; other < nprocs && !pid; other++) pid = fork() ? 0 : other;
    source = shared(nbytes), target = shared(nprocs * nbytes), own_part = shared(nbytes);
    for (size_t i = 0; i < nbytes / sizeof *source; i++) source[i] = i + 100.0 * pid;
    const double first[] = {100, 0, 100 - 100 * pid, 100 * pid, 0}; /* of the values, by operation */
    double seconds[BATCHES + 1];
    for (int batch = 0; batch <= BATCHES; batch++) {
        const double *found = NULL;
        double began = now();
        for (long i = 0; i < each; i++) found = collective(name, ++turn);
        seconds[batch] = (now() - began) / each;
        if (!found || found[0] != first[name]) { fprintf(stderr, "wrong values\n"); exit(1); }
    }
    if (pid) return 0;
    while (wait(NULL) > 0) {}
    qsort(seconds + 1, BATCHES, sizeof *seconds, compare);
    printf("%.9g\n", (seconds[BATCHES / 2] + seconds[BATCHES / 2 + 1]) / 2);
    return 0;
}
