/* The least that a put and a sync can do, without Python: two copies and two barriers.

   Two processes share memory. In each turn both of them write their source, copy it into an
   outbox, meet, copy the outbox of the other one into their target, and read the target. The
   second barrier lets nobody write an outbox that the other one still copies. The program prints
   the seconds of a turn: the median of ten batches behind the first one.

   Usage: two_copies BYTES TURNS [COPIES]; with COPIES 1 a turn has one copy, into one of two
   targets of the other process, and one barrier, which is the least that an hpput can do. */

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 10, VALUES = 251 };
struct flag { _Alignas(128) _Atomic long turn; };

static struct flag *flags;
static int pid;
static long meetings;

static void *shared(size_t nbytes)
{
    void *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) { perror("mmap"); exit(1); }
    return memory;
}

static void barrier(void)
{
    atomic_store_explicit(&flags[pid].turn, ++meetings, memory_order_release);
    while (atomic_load_explicit(&flags[1 - pid].turn, memory_order_acquire) < meetings)
        ;
}

static unsigned char largest(const unsigned char *bytes, size_t nbytes)
{
    unsigned char most = 0;
    for (size_t i = 0; i < nbytes; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return most;
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
    if (argc < 3) return 2;
    size_t nbytes = strtoull(argv[1], NULL, 10);
    long each = atol(argv[2]) / BATCHES, turn = 0;
    int copies = argc > 3 ? atoi(argv[3]) : 2;
    flags = shared(2 * sizeof *flags);
    unsigned char *room[2][2];
    for (int i = 0; i < 4; i++) room[i / 2][i % 2] = shared(nbytes);
    pid = fork() == 0;
    unsigned char *source = shared(nbytes), *target = shared(nbytes);
    double seconds[BATCHES + 1];
    for (int batch = 0; batch <= BATCHES; batch++) {
        double began = now();
        for (long i = 0; i < each; i++) {
            unsigned char value = ++turn % VALUES;
            memset(source, value, nbytes);
            if (copies == 1) {
                memcpy(room[1 - pid][turn % 2], source, nbytes);
                barrier();
                target = room[pid][turn % 2];
            } else {
                barrier(); /* the other one has copied the outbox of the turn before */
                memcpy(room[pid][0], source, nbytes);
                barrier();
                memcpy(target, room[1 - pid][0], nbytes);
            }
            if (largest(target, nbytes) != value) { fprintf(stderr, "wrong values\n"); exit(1); }
        }
        seconds[batch] = (now() - began) / each;
    }
    if (pid) return 0;
    wait(NULL);
    qsort(seconds + 1, BATCHES, sizeof *seconds, compare);
    printf("%.9g\n", (seconds[BATCHES / 2] + seconds[BATCHES / 2 + 1]) / 2);
    return 0;
}
