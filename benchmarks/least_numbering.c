/* The least that a query over keys that are no dense integers can do: number them, by a hash table.

   The keys are multiples of a large number modulo 2^40, as those of the benchmark; small ones are
   drawn more often than others. Each key is looked up once, and gets the number of its first
   appearance. The table has twice as many places as there are keys, or more, and is cleared before.
   One process does this. The program prints the seconds for all rows: the median of ten times.

   Usage: least_numbering ROWS KEYS */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMES = 10 };
static const uint64_t STEP = 2654435761u, SPAN = 1ull << 40, SPREAD = 0x9e3779b97f4a7c15u;
struct place { uint64_t key; uint32_t number; };

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

/* Number the keys; return how many there are. A place whose number is 0 is free. */
static uint32_t number(const uint64_t *keys, uint32_t *numbers, size_t rows, struct place *table,
                       int bits)
{
    uint32_t found = 0;
    uint64_t mask = (1ull << bits) - 1;
    memset(table, 0, sizeof *table << bits);
    for (size_t row = 0; row < rows; row++) {
        uint64_t at = keys[row] * SPREAD >> (64 - bits);
        while (table[at].number && table[at].key != keys[row]) at = (at + 1) & mask;
        if (!table[at].number) table[at] = (struct place){keys[row], ++found};
        numbers[row] = table[at].number - 1;
    }
    return found;
}

int main(int argc, char **argv)
{
    size_t rows = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t most = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, state = 1;
    if (!rows || !most) return 2;
    int bits = 1;
    while ((1ull << bits) < 2 * most) bits++;
    uint64_t *keys = malloc(rows * sizeof *keys);
    uint32_t *numbers = malloc(rows * sizeof *numbers);
    struct place *table = malloc(sizeof *table << bits);
    if (!keys || !numbers || !table) { perror("malloc"); return 1; }
    for (size_t row = 0; row < rows; row++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double part = (state >> 11) * 0x1p-53;
        keys[row] = (uint64_t)(most * pow(part, 4)) * STEP % SPAN;
    }
    double seconds[TIMES];
    uint32_t found = 0;
    for (int time = 0; time < TIMES; time++) {
        double began = now();
        found = number(keys, numbers, rows, table, bits);
        seconds[time] = now() - began;
    }
    for (size_t row = 0; row < rows; row++)
        if (numbers[row] >= found) { fprintf(stderr, "wrong numbers\n"); return 1; }
    qsort(seconds, TIMES, sizeof *seconds, compare);
    printf("%.9g\n", (seconds[TIMES / 2 - 1] + seconds[TIMES / 2]) / 2);
    return 0;
}
