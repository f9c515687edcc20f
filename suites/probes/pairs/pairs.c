/* pairs - bandwidth between every rank and every other, as a matrix (like mpiGraph).
 *
 * The pairs meet in rounds, as in a tournament: in each round every rank has one partner, and no
 * rank has two, so that N ranks need N - 1 rounds (N if N is odd). In a round both partners send
 * `window` messages of `size` bytes to each other at the same time (MPI_Isend, MPI_Irecv), a
 * number of times; a barrier keeps the rounds apart. All pairs of a round share the network.
 *
 *   bandwidth(i from j) = window * size / t      in MiB/s (2^20 bytes)
 *
 * with t the median, over the repetitions, of the time until rank i has all that j sent.
 *
 * Arguments: -s message size, bytes (1M)   -w window, messages (8)   -r repetitions (5)
 *            -o file for the matrix; default: standard output up to 64 ranks, else pairs.matrix
 * Example:   mpirun -n 4 ./pairs -s 4M -w 16
 *            Recv            n001:0     n001:1 ...
 *            n001:0 from      0.000  10234.120 ...
 *
 * Needs 2 ranks or more. Memory: window + 1 messages a rank; N^2 floats on rank 0 only.
 * Time: N - 1 rounds, each (repetitions + 1) * window * size / bandwidth.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 64, SHOWN_RANKS = 64, TAG_DATA = 1, TAG_ROW = 2 };

static const char PROBE[] = "pairs";
static const char USAGE[] = "pairs [-s bytes] [-w window] [-r repetitions] [-o file]";

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

struct buffers { size_t size; int window; unsigned char *out, *in; MPI_Request *requests; };

/* My partner in a round, or -1. The circle method: the last player stays, the others turn. */
static int partner_of(int me, int round)
{
    int players = ranks + ranks % 2, turning = players - 1, other; /* odd: the last is nobody */
    if (me == turning) {
        other = (int)((int64_t)round * (players / 2) % turning);
    } else {
        other = ((round - me) % turning + turning) % turning;
        if (other == me) other = turning;
    }
    return other < ranks ? other : -1;
}

/* Exchange one window with the partner; the time until all its messages are here. */
static double exchange(struct buffers b, int partner)
{
    int size = (int)b.size, w = b.window;
    double start = MPI_Wtime();
    for (int i = 0; i < w; i++)
        TRY(MPI_Irecv(b.in + (size_t)i * b.size, size, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD,
                      &b.requests[i]));
    for (int i = 0; i < w; i++)
        TRY(MPI_Isend(b.out, size, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD, &b.requests[w + i]));
    TRY(MPI_Waitall(w, b.requests, MPI_STATUSES_IGNORE));
    double time = MPI_Wtime() - start;
    TRY(MPI_Waitall(w, b.requests + w, MPI_STATUSES_IGNORE));
    return time;
}

/* The warm-up, in which every byte is looked at. */
static void checked_exchange(struct buffers b, int partner)
{
    fill_message(b.out, b.size, rank, partner);
    memset(b.in, 0, b.size * (size_t)b.window);
    exchange(b, partner);
    for (int i = 0; i < b.window; i++) check_message(b.in + (size_t)i * b.size, b.size, partner, rank);
}

/* Both partners must be ready, or the first one's time would hold its waiting for the other. */
static void meet(int partner)
{
    char nothing = 0, theirs;
    TRY(MPI_Sendrecv(&nothing, 1, MPI_CHAR, partner, TAG_ROW, &theirs, 1, MPI_CHAR, partner,
                     TAG_ROW, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* row[j] = bandwidth from j to me; the diagonal stays zero. */
static void measure_row(struct buffers b, int repetitions, float *row)
{
    double *times = memory((size_t)repetitions, sizeof *times);
    int rounds = ranks - 1 + ranks % 2;
    for (int round = 0; round < rounds; round++) {
        int partner = partner_of(rank, round);
        TRY(MPI_Barrier(MPI_COMM_WORLD)); /* the round before is over for all */
        if (partner >= 0) checked_exchange(b, partner);
        TRY(MPI_Barrier(MPI_COMM_WORLD)); /* all are warm */
        if (partner < 0) continue;
        for (int r = 0; r < repetitions; r++) {
            meet(partner);
            times[r] = exchange(b, partner);
        }
        double mib = (double)b.size * b.window / 1048576;
        row[partner] = (float)(mib / spread_of(times, (size_t)repetitions).median);
    }
    free(times);
}

/* Rank 0 takes the rows one by one; the others wait their turn in the synchronous send. */
static float *gather_rows(const float *row)
{
    size_t n = (size_t)ranks;
    if (rank != 0) {
        TRY(MPI_Ssend(row, ranks, MPI_FLOAT, 0, TAG_ROW, MPI_COMM_WORLD));
        return NULL;
    }
    float *matrix = memory(n * n, sizeof *matrix);
    memcpy(matrix, row, n * sizeof *row);
    for (int i = 1; i < ranks; i++)
        TRY(MPI_Recv(matrix + (size_t)i * n, ranks, MPI_FLOAT, i, TAG_ROW, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE));
    return matrix;
}

static void print_matrix(FILE *file, const float *matrix, const char *names)
{
    fprintf(file, "Recv\t");
    for (int j = 0; j < ranks; j++) fprintf(file, "%s:%d\t", names + j * NAME, j);
    fputc('\n', file);
    for (int i = 0; i < ranks; i++) {
        fprintf(file, "%s:%d from\t", names + i * NAME, i);
        for (int j = 0; j < ranks; j++)
            fprintf(file, "%.3f\t", (double)matrix[(size_t)i * (size_t)ranks + (size_t)j]);
        fputc('\n', file);
    }
}

static void write_matrix(const char *path, const float *matrix, const char *names)
{
    if (!path && ranks <= SHOWN_RANKS) {
        print_matrix(stdout, matrix, names);
        return;
    }
    if (!path) path = "pairs.matrix";
    FILE *file = fopen(path, "w");
    if (!file) fail("open %s: %s", path, strerror(errno));
    print_matrix(file, matrix, names);
    if (ferror(file) || fclose(file)) fail("write %s: %s", path, strerror(errno));
    printf("matrix in %s\n", path);
}

/* The rank that is slowest in the mean over all partners: in its node one looks first. */
static void print_totals(const float *matrix, const char *names)
{
    size_t n = (size_t)ranks, used = 0, slowest = 0;
    double *values = memory(n * (n - 1), sizeof *values), sum = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        double row = 0;
        for (size_t j = 0; j < n; j++) {
            if (i == j) continue;
            row += values[used++] = (double)matrix[i * n + j];
        }
        row /= (double)(n - 1);
        sum += row;
        if (i == 0 || row < least) {
            least = row;
            slowest = i;
        }
    }
    struct spread s = spread_of(values, used);
    printf("Recv max\t%.3f\nRecv avg\t%.3f\n", s.max, sum / (double)n);
    printf("bandwidth min %.1f median %.1f max %.1f MiB/s\n", s.min, s.median, s.max);
    printf("average bandwidth %.1f MiB/s\n", sum / (double)n);
    printf("slowest rank %zu node %s bandwidth %.1f MiB/s\n", slowest, names + slowest * NAME, least);
    free(values);
}

int main(int argc, char **argv)
{
    struct buffers b = {.size = 1 << 20, .window = 8};
    int repetitions = 5, option;
    const char *path = NULL;
    char name[NAME] = "", *names = NULL;
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":s:w:r:o:")) != -1) {
        if (option == 's') b.size = (size_t)number('s', optarg, 1, 1 << 30);
        else if (option == 'w') b.window = (int)number('w', optarg, 1, 10000);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, 100000);
        else if (option == 'o') path = optarg;
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (ranks < 2) usage("needs at least 2 ranks, got %d", ranks);
    if (rank == 0)
        printf("pairs of %d ranks, window %d x %zu bytes, %d repetitions, rates in MiB/s\n", ranks,
               b.window, b.size, repetitions);

    b.out = memory(b.size, 1);
    b.in = memory(b.size, (size_t)b.window);
    b.requests = memory(2 * (size_t)b.window, sizeof(MPI_Request));
    float *row = memory((size_t)ranks, sizeof *row);
    measure_row(b, repetitions, row);

    if (gethostname(name, sizeof name - 1)) fail("gethostname: %s", strerror(errno));
    if (rank == 0) names = memory((size_t)ranks, NAME);
    TRY(MPI_Gather(name, NAME, MPI_CHAR, names, NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    float *matrix = gather_rows(row);
    if (rank == 0) {
        write_matrix(path, matrix, names);
        print_totals(matrix, names);
        printf("pairs finished, all messages correct\n");
    }
    free(matrix);
    free(names);
    free(row);
    free(b.out);
    free(b.in);
    free(b.requests);
    MPI_Finalize();
    return 0;
}
