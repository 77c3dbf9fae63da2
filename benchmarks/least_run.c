/* The least that a run of an empty program can do on processes that are there already.

   The caller tells each process by a pipe to begin. The processes meet before the program, since
   its time 0 is when all have arrived, and after it; the last one tells the caller by a pipe. Who
   waits for others looks some times, and then yields its core. The program prints the seconds of a
   run: the median of ten batches behind the first one.

   Usage: least_run PROCESSES RUNS */

#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 10, SPINS = 1000, MOST = 256 };
static _Atomic long *arrived; /* at all meetings so far, by all processes */
static int begin[MOST][2], end[2];

/* Meet all others; return whether this process has come last. */
static int meet(long turn, int nprocs)
{
    long all = turn * nprocs, before = atomic_fetch_add(arrived, 1);
    for (long spins = 0; atomic_load_explicit(arrived, memory_order_acquire) < all; spins++)
        if (spins > SPINS) sched_yield();
    return before == all - 1;
}

static int take_part(int pid, int nprocs)
{
    char byte;
    for (long turn = 0; read(begin[pid][0], &byte, 1) == 1;) {
        meet(++turn, nprocs);
        if (meet(++turn, nprocs) && write(end[1], &byte, 1) != 1) return 1;
    }
    return 0;
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
    int nprocs = argc == 3 ? atoi(argv[1]) : 0;
    long each = nprocs ? atol(argv[2]) / BATCHES : 0;
    if (nprocs < 1 || nprocs > MOST || each < 1 || pipe(end)) return 2;
    arrived = mmap(NULL, sizeof *arrived, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arrived == MAP_FAILED) { perror("mmap"); return 1; }
    for (int pid = 0; pid < nprocs; pid++) {
        if (pipe(begin[pid])) { perror("pipe"); return 1; }
        if (fork() == 0) {
            for (int other = 0; other <= pid; other++) close(begin[other][1]);
            return take_part(pid, nprocs);
        }
    }
    double seconds[BATCHES + 1];
    char byte = 0;
    for (int batch = 0; batch <= BATCHES; batch++) {
        double began = now();
        for (long run = 0; run < each; run++) {
            for (int pid = 0; pid < nprocs; pid++)
                if (write(begin[pid][1], &byte, 1) != 1) { perror("write"); return 1; }
            if (read(end[0], &byte, 1) != 1) { perror("read"); return 1; }
        }
        seconds[batch] = (now() - began) / each;
    }
    for (int pid = 0; pid < nprocs; pid++) close(begin[pid][1]);
    while (wait(NULL) > 0) {}
    qsort(seconds + 1, BATCHES, sizeof *seconds, compare);
    printf("%.9g\n", (seconds[BATCHES / 2] + seconds[BATCHES / 2 + 1]) / 2);
    return 0;
}
