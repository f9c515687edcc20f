/* What the programs that write in steps have in common: arguments, values, times, rates, checks.
 *
 *   static const char PROBE[] = "h5write", USAGE[] = "h5write [-l ...", EXTENSION[] = "h5";
 *   struct step { ... };            what is open during a step
 *   #include "steps.h"              and the functions that are declared here
 *
 * In each step every rank writes `b` bytes: its part of what all ranks share in one file, or all of a
 * file of its own. A step opens the file (the first creates it), writes, flushes (which is
 * MPI_File_sync) and closes the file. All steps stay in the file.
 *
 *   rate of a step = ranks * b / time from open to close    in MiB/s (2^20 bytes)
 *   best, mean     = the highest rate of a step, and the mean of them
 *   total          = all bytes / the sum of the times from open to close
 *
 * Time is that of the slowest rank. Making the values is not in it: a step is written in pieces of at
 * most `m` bytes, and the clock stands between them, when all ranks fill their buffers.
 *
 * Each value, 8 bytes, is a function of its step and of its place among the values of all ranks. After
 * the last step each rank reads what another has written, on another node where there are several, and
 * compares every value. Reading is not timed, and on one node it may be from memory. There are rates
 * only when all values are right.
 *
 * Arguments: -l one or each: one file, or a file each (one)      -c collective calls (with -l one)
 *            -b bytes a rank and step (4M), of whole values      -s steps (4)
 *            -m piece, bytes (64M): memory a rank                -d the directory, which must exist (.)
 *
 * Exit code: 0; 3: a value is wrong; 4: there is no space for all steps, and nothing was written (by
 * statvfs, which knows no quota); 2: wrong arguments; 1: anything else. The files are removed, unless
 * it fails. For a test of our checks WRITE_FLIP=N changes a byte of step N after it was written.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH = 4096, WRONG_VALUE = 3, NO_SPACE = 4 };

#include "probe.h"

struct job {
    bool one, collective;
    int64_t bytes, piece;
    int steps;
    char stem[PATH / 2];
};

/* ---- what a program must have ---- */

/* Open the file of a writer for a step, on all ranks together if there is one file. */
static struct step open_step(const struct job *job, int writer, int number, bool writing);

/* Flush what was written, and close the file. */
static void close_step(struct step step, bool writing);

/* Write or read n values of 8 bytes from a place of the step on. */
static void move_values(struct step step, uint64_t *values, int64_t n, int64_t place, bool writing);

/* Where the values of a step begin in the file of rank 0; this rank alone calls it. */
static off_t begin_of(const struct job *job, const char *path, int number);

/* ---- what is in the files ---- */

/* The value at a place among the values of all ranks. An odd factor: no two of a step are equal. */
static uint64_t value_at(int step, uint64_t place)
{
    return (uint64_t)step * 0x9e3779b97f4a7c15u ^ (place + 1) * 0xd1342543de82ef95u;
}

static uint64_t first_of(const struct job *job, int writer)
{
    return (uint64_t)writer * (uint64_t)job->bytes / 8;
}

static void fill(uint64_t *values, uint64_t n, int step, uint64_t first)
{
    for (uint64_t i = 0; i < n; i++) values[i] = value_at(step, first + i);
}

static void path_of(const struct job *job, int writer, char *path)
{
    if (job->one) snprintf(path, PATH, "%s.%s", job->stem, EXTENSION);
    else snprintf(path, PATH, "%s.%d.%s", job->stem, writer, EXTENSION);
}

/* How many values are wrong; the first is named. */
static uint64_t count_wrong(const uint64_t *values, uint64_t n, int step, uint64_t first, const char *path)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < n; i++)
        if (values[i] != value_at(step, first + i) && wrong++ == 0)
            fprintf(stderr, "ERROR: %s: wrong value: %s: step %d, value %" PRIu64 ": %016" PRIx64
                    ", not %016" PRIx64 "\n", PROBE, path, step, first + i, values[i], value_at(step, first + i));
    return wrong;
}

/* ---- one step ---- */

/* Seconds from open to close, of the slowest rank. */
static double write_step(const struct job *job, int number, uint64_t *values)
{
    uint64_t all = (uint64_t)job->bytes / 8, most = (uint64_t)job->piece / 8, first = first_of(job, rank);
    struct step step = {0};
    double time = 0, slowest;
    for (uint64_t begin = 0; begin < all; begin += most) {
        uint64_t n = all - begin < most ? all - begin : most;
        fill(values, n, number, first + begin);
        TRY(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        if (begin == 0) step = open_step(job, rank, number, true);
        move_values(step, values, (int64_t)n, (int64_t)((job->one ? first : 0) + begin), true);
        if (begin + n == all) close_step(step, true);
        double took = MPI_Wtime() - start;
        TRY(MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
        time += slowest;
    }
    return time;
}

/* Wrong values of a step of a writer. */
static uint64_t check_step(const struct job *job, int writer, int number, uint64_t *values)
{
    uint64_t all = (uint64_t)job->bytes / 8, most = (uint64_t)job->piece / 8, wrong = 0;
    uint64_t first = first_of(job, writer);
    char path[PATH];
    path_of(job, writer, path);
    struct step step = open_step(job, writer, number, false);
    for (uint64_t begin = 0; begin < all; begin += most) {
        uint64_t n = all - begin < most ? all - begin : most;
        memset(values, 0, 8 * n);
        move_values(step, values, (int64_t)n, (int64_t)((job->one ? first : 0) + begin), false);
        wrong += count_wrong(values, n, number, first + begin, path);
    }
    close_step(step, false);
    return wrong;
}

/* ---- around the steps ---- */

/* Change a byte of a step in the file of rank 0, as a disk would that errs. */
static void flip_byte(const struct job *job, int number)
{
    char path[PATH];
    unsigned char byte;
    path_of(job, 0, path);
    off_t at = begin_of(job, path, number) + job->bytes / 2;
    int raw = open(path, O_RDWR);
    if (raw < 0 || pread(raw, &byte, 1, at) != 1) fail("%s: %s", path, strerror(errno));
    byte ^= 1;
    if (pwrite(raw, &byte, 1, at) != 1 || close(raw)) fail("%s: %s", path, strerror(errno));
}

/* Ranks on the first node: rank r + shift is on another node than r, if ranks fill node by node. */
static int find_shift(void)
{
    MPI_Comm node;
    int locals;
    TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    TRY(MPI_Comm_size(node, &locals));
    TRY(MPI_Comm_free(&node));
    TRY(MPI_Bcast(&locals, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return locals % ranks ? locals : 1 % ranks;
}

/* A name that no other execution has, the same on all ranks. */
static void choose_stem(struct job *job, const char *directory)
{
    if (rank == 0) {
        snprintf(job->stem, sizeof job->stem, "%s/%s.XXXXXX", directory, PROBE);
        int file = mkstemp(job->stem);
        if (file < 0) fail("mkstemp %s: %s", job->stem, strerror(errno));
        close(file);
        unlink(job->stem);
    }
    TRY(MPI_Bcast(job->stem, sizeof job->stem, MPI_CHAR, 0, MPI_COMM_WORLD));
}

/* Refuse before anything is written; 1 MiB for what the library adds to each file. */
static void need_space(const struct job *job, const char *directory)
{
    struct statvfs about;
    int enough = 1;
    if (rank == 0) {
        if (statvfs(directory, &about)) fail("-d: %s: %s", directory, strerror(errno));
        double need = (double)ranks * (double)job->bytes * job->steps / 1048576 + (job->one ? 1 : ranks);
        double free_space = (double)about.f_bavail * (double)about.f_frsize / 1048576;
        enough = need <= free_space;
        if (!enough)
            fprintf(stderr, "ERROR: %s: no space: %s has %.1f MiB free, and %d steps of %d ranks need "
                    "%.1f MiB: choose fewer steps, fewer bytes or another directory\n",
                    PROBE, directory, free_space, job->steps, ranks, need);
    }
    TRY(MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (enough) return;
    MPI_Finalize();
    exit(NO_SPACE);
}

static void print_rates(const struct job *job, const double *times)
{
    double step_mib = (double)ranks * (double)job->bytes / 1048576, best = 0, sum = 0, time = 0;
    for (int s = 0; s < job->steps; s++) {
        double rate = step_mib / times[s];
        printf("rate of step %d %.1f MiB/s\n", s + 1, rate);
        best = rate > best ? rate : best;
        sum += rate;
        time += times[s];
    }
    printf("best %.1f MiB/s\nmean %.1f MiB/s\n", best, sum / job->steps);
    printf("total %.1f MiB/s, %.1f MiB from open to close in %.6f s\n", step_mib * job->steps / time,
           step_mib * job->steps, time);
    printf("%s finished, every value correct\n", PROBE);
}

static bool one_of(int option, const char *text, const char *no, const char *yes)
{
    if (strcmp(text, no) && strcmp(text, yes)) usage("-%c: '%s' is neither %s nor %s", option, text, no, yes);
    return strcmp(text, yes) == 0;
}

static struct job read_arguments(int argc, char **argv, const char **directory)
{
    struct job job = {.one = true, .bytes = 4 << 20, .piece = 64 << 20, .steps = 4};
    int option;
    while ((option = getopt(argc, argv, ":l:cb:s:m:d:")) != -1) {
        if (option == 'l') job.one = one_of('l', optarg, "each", "one");
        else if (option == 'c') job.collective = true;
        else if (option == 'b') job.bytes = number('b', optarg, 8, (int64_t)1 << 44);
        else if (option == 's') job.steps = (int)number('s', optarg, 1, 100000);
        else if (option == 'm') job.piece = number('m', optarg, 8, 1 << 30);
        else if (option == 'd') *directory = optarg;
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (job.bytes % 8 || job.piece % 8) usage("-b, -m: must be multiples of 8, the bytes of a value");
    if (job.collective && !job.one) usage("-c: only with -l one");
    if (strlen(*directory) > sizeof job.stem - 32) usage("-d: the name is too long");
    if (job.piece > job.bytes) job.piece = job.bytes;
    return job;
}

int main(int argc, char **argv)
{
    const char *directory = ".", *flip = getenv("WRITE_FLIP");
    start_mpi(&argc, &argv);
    struct job job = read_arguments(argc, argv, &directory);
    int flipped = flip ? atoi(flip) : 0, shift = find_shift();
    if (flip && (flipped < 1 || flipped > job.steps)) usage("WRITE_FLIP: '%s' is no step", flip);
    if (rank == 0)
        printf("%s of %d ranks, %s, %s, %d steps of %" PRId64 " bytes a rank, reads of rank + %d\n",
               PROBE, ranks, job.one ? "one file" : "a file each", job.collective ? "collective" : "independent",
               job.steps, job.bytes, shift);
    need_space(&job, directory);
    choose_stem(&job, directory);

    uint64_t *values = memory((size_t)job.piece, 1), wrong = 0, all_wrong;
    double *times = memory((size_t)job.steps, sizeof *times);
    for (int s = 1; s <= job.steps; s++) {
        times[s - 1] = write_step(&job, s, values);
        if (rank == 0) {
            printf("step %d of %d written in %.6f s\n", s, job.steps, times[s - 1]);
            fflush(stdout); /* who watches it, or kills it, sees how far it came */
        }
    }
    if (flipped && rank == 0) flip_byte(&job, flipped);
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    for (int s = 1; s <= job.steps; s++) wrong += check_step(&job, (rank + shift) % ranks, s, values);
    TRY(MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (rank == 0 && all_wrong) printf("wrong values: %" PRIu64 "\n", all_wrong);
    else if (rank == 0) print_rates(&job, times);
    if (!all_wrong && (rank == 0 || !job.one)) {
        char path[PATH];
        path_of(&job, rank, path);
        if (unlink(path)) fail("unlink %s: %s", path, strerror(errno));
    }
    free(times);
    free(values);
    MPI_Finalize();
    return all_wrong ? WRONG_VALUE : 0;
}
