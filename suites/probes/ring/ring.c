/* ring - latency and bandwidth while every rank talks to its two neighbours in a ring (as HPCC).
 *
 * The ranks form a ring. In each step every rank sends one message to its left and one to its right
 * neighbour and receives one from each (MPI_Irecv, MPI_Isend, MPI_Waitall): all at once.
 *
 *   latency   = t / 2            in us, of short messages
 *   bandwidth = 2 * size / t     in MiB/s (2^20 bytes) per rank: what one rank sends; long messages
 *
 * with t the time of a step on the slowest rank: two messages are sent a step. The natural ring is in
 * rank order; a random ring is a shuffle, the same in every execution with the same seed. With ranks
 * filled node by node, the natural ring loads the inside of nodes, random rings load the network.
 * min, median and max are over repetitions (and over the rings, for random ones).
 * For MB/s, as HPCC prints them, multiply by 1.048576.
 *
 * Arguments: -k random rings (5)       -r repetitions (5)
 *            -l short message, bytes (8)   -s long message, bytes (2000000)
 *            -i most steps a repetition (200); fewer if they would take longer than 20 ms
 *            -x seed (1)
 * Example:   mpirun -n 4 ./ring -k 10 -s 4M
 *            natural latency min 0.52 median 0.55 max 0.71 us
 *
 * Needs 2 ranks or more. Memory a rank: 4 messages. Time hardly grows with the number of ranks.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PROBE[] = "ring";
static const char USAGE[] = "ring [-k rings] [-r repetitions] [-l bytes] [-s bytes] [-i steps] [-x seed]";
static const double LONGEST = 0.02; /* s a repetition */

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

enum { TO_RIGHT = 1, TO_LEFT = 2 };

struct ring { int left, right; };

struct messages { size_t size; unsigned char *to_left, *to_right, *from_left, *from_right; };

static struct messages prepare(struct ring ring, size_t size)
{
    struct messages m = {size, memory(size, 1), memory(size, 1), memory(size, 1), memory(size, 1)};
    fill_message(m.to_left, size, rank, ring.left);
    fill_message(m.to_right, size, rank, ring.right);
    return m;
}

static void discard(struct messages m)
{
    free(m.to_left);
    free(m.to_right);
    free(m.from_left);
    free(m.from_right);
}

static void step(struct ring ring, struct messages m)
{
    MPI_Request requests[4];
    int size = (int)m.size;
    TRY(MPI_Irecv(m.from_left, size, MPI_BYTE, ring.left, TO_RIGHT, MPI_COMM_WORLD, &requests[0]));
    TRY(MPI_Irecv(m.from_right, size, MPI_BYTE, ring.right, TO_LEFT, MPI_COMM_WORLD, &requests[1]));
    TRY(MPI_Isend(m.to_right, size, MPI_BYTE, ring.right, TO_RIGHT, MPI_COMM_WORLD, &requests[2]));
    TRY(MPI_Isend(m.to_left, size, MPI_BYTE, ring.left, TO_LEFT, MPI_COMM_WORLD, &requests[3]));
    TRY(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
}

/* One step, not timed, of which every byte is looked at. */
static void checked_step(struct ring ring, struct messages m)
{
    memset(m.from_left, 0, m.size);
    memset(m.from_right, 0, m.size);
    step(ring, m);
    check_message(m.from_left, m.size, ring.left, rank);
    check_message(m.from_right, m.size, ring.right, rank);
}

/* Time of a step on the slowest rank; the same number on all ranks. */
static double time_steps(struct ring ring, struct messages m, int steps)
{
    double slowest;
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    double start = MPI_Wtime();
    for (int i = 0; i < steps; i++) step(ring, m);
    double time = (MPI_Wtime() - start) / steps;
    TRY(MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    return slowest;
}

/* Fill times[repetitions] for messages of one size in one ring. */
static void measure(struct ring ring, size_t size, int most_steps, int repetitions, double *times)
{
    struct messages m = prepare(ring, size);
    checked_step(ring, m);
    double estimate = time_steps(ring, m, 5);
    int steps = estimate * most_steps > LONGEST ? (int)(LONGEST / estimate) : most_steps;
    if (steps < 1) steps = 1;
    for (int r = 0; r < repetitions; r++) times[r] = time_steps(ring, m, steps);
    checked_step(ring, m);
    discard(m);
}

/* SplitMix64: small, good, and the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* My neighbours in the next shuffle. All ranks draw the same numbers and so the same ring. */
static struct ring random_ring(uint64_t *state)
{
    int *order = memory((size_t)ranks, sizeof *order);
    for (int i = 0; i < ranks; i++) order[i] = i;
    for (int i = ranks - 1; i > 0; i--) {
        int j = (int)(next_random(state) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    int me = 0;
    while (order[me] != rank) me++;
    struct ring ring = {order[(me + ranks - 1) % ranks], order[(me + 1) % ranks]};
    free(order);
    return ring;
}

static void print_results(const char *name, size_t size, double *latency, double *bandwidth, size_t n)
{
    struct spread t = spread_of(latency, n), u = spread_of(bandwidth, n);
    double mib = 2.0 * (double)size / 1048576;
    if (rank != 0) return;
    printf("%s latency min %.2f median %.2f max %.2f us\n", name, 5e5 * t.min, 5e5 * t.median,
           5e5 * t.max);
    printf("%s bandwidth min %.1f median %.1f max %.1f MiB/s\n", name, mib / u.max, mib / u.median,
           mib / u.min);
}

int main(int argc, char **argv)
{
    int rings = 5, repetitions = 5, most_steps = 200, option;
    size_t little = 8, large = 2000000;
    uint64_t seed = 1;
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":k:r:l:s:i:x:")) != -1) {
        if (option == 'k') rings = (int)number('k', optarg, 1, 100000);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, 100000);
        else if (option == 'l') little = (size_t)number('l', optarg, 1, 1 << 30);
        else if (option == 's') large = (size_t)number('s', optarg, 1, 1 << 30);
        else if (option == 'i') most_steps = (int)number('i', optarg, 1, 1000000000);
        else if (option == 'x') seed = (uint64_t)number('x', optarg, 0, INT64_MAX);
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (ranks < 2) usage("needs at least 2 ranks, got %d", ranks);
    if (rank == 0)
        printf("ring of %d ranks, %d random rings, %d repetitions, messages of %zu and %zu bytes\n",
               ranks, rings, repetitions, little, large);

    size_t n = (size_t)rings * (size_t)repetitions;
    double *latency = memory(n, sizeof *latency), *bandwidth = memory(n, sizeof *bandwidth);
    struct ring natural = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
    measure(natural, little, most_steps, repetitions, latency);
    measure(natural, large, most_steps, repetitions, bandwidth);
    print_results("natural", large, latency, bandwidth, (size_t)repetitions);
    for (int k = 0; k < rings; k++) {
        struct ring ring = random_ring(&seed);
        measure(ring, little, most_steps, repetitions, latency + k * repetitions);
        measure(ring, large, most_steps, repetitions, bandwidth + k * repetitions);
    }
    print_results("random", large, latency, bandwidth, n);
    free(latency);
    free(bandwidth);
    if (rank == 0) printf("ring finished, all messages correct\n");
    MPI_Finalize();
    return 0;
}
