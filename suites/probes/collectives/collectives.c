/* collectives - time of MPI_Barrier, MPI_Bcast, MPI_Allreduce and MPI_Alltoall over message sizes.
 *
 * Every call is preceded by a barrier, which is not timed, so that all ranks begin together and
 * calls cannot run into each other. A repetition is the mean of many calls, in us, on each rank.
 *
 *   ranks       min, avg, max over the ranks, of a rank's median over the repetitions
 *   slowest     min, median, max over the repetitions, of the slowest rank's time in each
 *
 * Size is bytes: of the message (bcast), of the vector of doubles (allreduce), of the block from each
 * rank to each other (alltoall). Results are compared element by element with what they must be:
 * bcast from a root that changes, allreduce of whole numbers (exact in doubles), alltoall with
 * blocks that tell sender and receiver.
 *
 * Arguments: -l smallest size, bytes (8)    -s largest size, bytes (512K); each is 16 times the last
 *            -r repetitions (5)   -i most calls a repetition (200); fewer if they take over 10 ms
 *            -m most memory a rank for alltoall, bytes (64M); sizes above are left out, and said so
 * Example:   mpirun -n 4 ./collectives -s 64K
 *            allreduce bytes 8 ranks min 0.71 avg 0.75 max 0.80 us slowest min 0.80 median 0.83 max 1.02 us
 *
 * Runs from 1 rank. Memory a rank: 2 messages; for alltoall 2 * ranks * size.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PROBE[] = "collectives";
static const char USAGE[] = "collectives [-l bytes] [-s bytes] [-r repetitions] [-i calls] [-m bytes]";
static const double LONGEST = 0.01; /* s a repetition, all calls of it */

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

enum operation { BARRIER, BCAST, ALLREDUCE, ALLTOALL, OPERATIONS };

static const char *const NAME[OPERATIONS] = {"barrier", "bcast", "allreduce", "alltoall"};

struct job { enum operation operation; int count, root; double *in, *out; }; /* count of doubles */

/* A whole number that tells who sends it, to whom (or from which root), and its place. */
static double value_of(int from, int to, int place)
{
    return (double)from * 3 + (double)to * 5 + place % 1009 + 1;
}

static void prepare(struct job job)
{
    int n = job.count;
    if (job.operation == BCAST)
        for (int i = 0; i < n; i++) job.in[i] = rank == job.root ? value_of(rank, rank, i) : -1;
    if (job.operation == ALLREDUCE)
        for (int i = 0; i < n; i++) job.in[i] = value_of(rank, 0, i), job.out[i] = -1;
    if (job.operation == ALLTOALL)
        for (int to = 0; to < ranks; to++)
            for (int i = 0; i < n; i++) {
                job.in[(size_t)to * n + i] = value_of(rank, to, i);
                job.out[(size_t)to * n + i] = -1;
            }
}

static void call(struct job job)
{
    int n = job.count;
    switch (job.operation) {
    case BCAST: TRY(MPI_Bcast(job.in, n, MPI_DOUBLE, job.root, MPI_COMM_WORLD)); break;
    case ALLREDUCE:
        TRY(MPI_Allreduce(job.in, job.out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        break;
    case ALLTOALL:
        TRY(MPI_Alltoall(job.in, n, MPI_DOUBLE, job.out, n, MPI_DOUBLE, MPI_COMM_WORLD));
        break;
    default: TRY(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void compare(struct job job, double got, double expected, int from, int place)
{
    if (got != expected)
        fail("wrong data: %s of %zu bytes: element %d from rank %d is %.17g, not %.17g",
             NAME[job.operation], (size_t)job.count * sizeof(double), place, from, got, expected);
}

static void check(struct job job)
{
    int n = job.count;
    if (job.operation == BCAST)
        for (int i = 0; i < n; i++) compare(job, job.in[i], value_of(job.root, job.root, i), job.root, i);
    if (job.operation == ALLREDUCE) {
        double from_all = 3.0 * ranks * (ranks - 1.0) / 2; /* sum of 3 * rank */
        for (int i = 0; i < n; i++)
            compare(job, job.out[i], from_all + ranks * value_of(0, 0, i), -1, i);
    }
    if (job.operation == ALLTOALL)
        for (int from = 0; from < ranks; from++)
            for (int i = 0; i < n; i++)
                compare(job, job.out[(size_t)from * n + i], value_of(from, rank, i), from, i);
}

static void checked_call(struct job job)
{
    prepare(job);
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    call(job);
    check(job);
}

/* Mean seconds a call, on this rank. */
static double time_calls(struct job job, int calls)
{
    double time = 0;
    for (int i = 0; i < calls; i++) {
        TRY(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        call(job);
        time += MPI_Wtime() - start;
    }
    return time / calls;
}

/* As many calls as fit into a repetition, barriers included: the same number on all ranks. */
static int choose_calls(struct job job, int most)
{
    double longest, start = MPI_Wtime();
    time_calls(job, 5);
    double estimate = (MPI_Wtime() - start) / 5;
    TRY(MPI_Allreduce(&estimate, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    int calls = longest * most > LONGEST ? (int)(LONGEST / longest) : most;
    return calls < 1 ? 1 : calls;
}

static void measure(struct job job, int repetitions, int most_calls)
{
    size_t n = (size_t)repetitions;
    double *times = memory(n, sizeof *times), *slowest = memory(n, sizeof *slowest);
    double least, sum, most;
    job.root = 0;
    checked_call(job);
    int calls = choose_calls(job, most_calls);
    for (size_t r = 0; r < n; r++) {
        job.root = (int)(r % (size_t)ranks);
        times[r] = time_calls(job, calls);
    }
    TRY(MPI_Reduce(times, slowest, repetitions, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    double mine = spread_of(times, n).median;
    TRY(MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD));
    TRY(MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    TRY(MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    job.root = ranks - 1;
    checked_call(job);
    if (rank == 0) {
        struct spread s = spread_of(slowest, n);
        printf("%s bytes %zu ranks min %.2f avg %.2f max %.2f us "
               "slowest min %.2f median %.2f max %.2f us\n",
               NAME[job.operation], (size_t)job.count * sizeof(double), 1e6 * least,
               1e6 * sum / ranks, 1e6 * most, 1e6 * s.min, 1e6 * s.median, 1e6 * s.max);
    }
    free(times);
    free(slowest);
}

int main(int argc, char **argv)
{
    int64_t smallest = 8, largest = 1 << 19, most_memory = 64 << 20;
    int repetitions = 5, most_calls = 200, option;
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":l:s:r:i:m:")) != -1) {
        if (option == 'l') smallest = number('l', optarg, 8, 1 << 30);
        else if (option == 's') largest = number('s', optarg, 8, 1 << 30);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, 100000);
        else if (option == 'i') most_calls = (int)number('i', optarg, 1, 1000000000);
        else if (option == 'm') most_memory = number('m', optarg, 1, (int64_t)1 << 50);
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (smallest > largest) usage("-l: smallest size above the largest (-s)");
    if (rank == 0)
        printf("collectives of %d ranks, %d repetitions, sizes %" PRId64 " to %" PRId64 " bytes\n",
               ranks, repetitions, smallest, largest);

    measure((struct job){.operation = BARRIER}, repetitions, most_calls);
    for (enum operation operation = BCAST; operation < OPERATIONS; operation++)
        for (int64_t size = smallest; size <= largest; size *= 16) {
            int64_t blocks = operation == ALLTOALL ? ranks : 1;
            if (operation == ALLTOALL && 2 * blocks * size > most_memory) {
                if (rank == 0)
                    printf("%s bytes %" PRId64 " left out: more than %" PRId64 " bytes a rank\n",
                           NAME[operation], size, most_memory);
                continue;
            }
            struct job job = {.operation = operation, .count = (int)(size / 8)};
            job.in = memory((size_t)blocks * (size_t)job.count, sizeof(double));
            job.out = memory((size_t)blocks * (size_t)job.count, sizeof(double));
            measure(job, repetitions, most_calls);
            free(job.in);
            free(job.out);
        }
    if (rank == 0) printf("collectives finished, all results correct\n");
    MPI_Finalize();
    return 0;
}
