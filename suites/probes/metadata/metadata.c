/* metadata - how many files and directories a file system makes, looks up and removes in a second.
 *
 * Each rank makes `n` directories, looks at them (stat) and removes them; then the same with empty
 * files. Each of the six steps is done by all ranks together, between barriers.
 *
 *   rate = ranks * n / t     in ops/s
 *
 * with t the time of the slowest rank. "create" of a file is open(O_CREAT | O_EXCL) and close.
 * Every rank looks at what another made: that of a rank on the next node where there are several
 * nodes, so that a client's own cache cannot answer. On one node it often can.
 * Rates of create depend on what went before: ext4, for one, steps over every inode that was freed in
 * the last seconds to minutes, so that a second run right after a first can be several times slower.
 * Removal of the directory that held everything fails if anything is left: so removal is checked.
 *
 * Arguments: -n files a rank (1000)   -r repetitions (3); a smaller warm-up comes first
 *            -l shared or private: one directory for all ranks, or one for each (shared)
 *            -d the directory to work in, which must exist (.)
 * Example:   mpirun -n 4 ./metadata -n 1000 -d /scratch/me
 *            file create min 8032.1 median 8411.0 max 8510.3 ops/s
 *
 * Runs from 1 rank. Nothing is left behind unless it fails.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096 };

static const char PROBE[] = "metadata";
static const char USAGE[] = "metadata [-n files] [-r repetitions] [-l shared|private] [-d directory]";

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

enum step { DIRECTORY_CREATE, DIRECTORY_STAT, DIRECTORY_REMOVE, FILE_CREATE, FILE_STAT, FILE_REMOVE, STEPS };

static const char *const NAME[STEPS] = {"directory create", "directory stat", "directory remove",
                                        "file create", "file stat", "file remove"};

struct work { char top[PATH / 2]; bool private; int shift; }; /* shift: ranks to the next node */

/* The directory in which a rank's entries are. */
static void place_of(const struct work *work, int owner, char *path)
{
    if (work->private) snprintf(path, PATH, "%s/%d", work->top, owner);
    else snprintf(path, PATH, "%s", work->top);
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

/* The directories in which everything happens; the name is new, and the same on all ranks. */
static void make_tree(struct work *work, const char *directory)
{
    char path[PATH];
    if (rank == 0) {
        snprintf(work->top, sizeof work->top, "%s/metadata.XXXXXX", directory);
        if (!mkdtemp(work->top)) fail("mkdtemp %s: %s", work->top, strerror(errno));
    }
    TRY(MPI_Bcast(work->top, sizeof work->top, MPI_CHAR, 0, MPI_COMM_WORLD));
    place_of(work, rank, path);
    if (work->private && mkdir(path, 0700)) fail("mkdir %s: %s", path, strerror(errno));
    TRY(MPI_Barrier(MPI_COMM_WORLD));
}

static void remove_tree(const struct work *work)
{
    char path[PATH];
    place_of(work, rank, path);
    if (work->private && rmdir(path)) fail("wrong: rmdir %s: %s", path, strerror(errno));
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0 && rmdir(work->top)) fail("wrong: rmdir %s: %s", work->top, strerror(errno));
}

static void look(const char *path, bool directory)
{
    struct stat found;
    if (stat(path, &found)) fail("stat %s: %s", path, strerror(errno));
    if (directory ? !S_ISDIR(found.st_mode) : !S_ISREG(found.st_mode) || found.st_size != 0)
        fail("wrong: %s is not %s", path, directory ? "a directory" : "an empty file");
}

static void make_file(const char *path)
{
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) fail("open %s: %s", path, strerror(errno));
    if (close(file)) fail("close %s: %s", path, strerror(errno));
}

static void act(enum step step, const char *path)
{
    switch (step) {
    case DIRECTORY_CREATE:
        if (mkdir(path, 0700)) fail("mkdir %s: %s", path, strerror(errno));
        break;
    case DIRECTORY_REMOVE:
        if (rmdir(path)) fail("rmdir %s: %s", path, strerror(errno));
        break;
    case FILE_CREATE: make_file(path); break;
    case FILE_REMOVE:
        if (unlink(path)) fail("unlink %s: %s", path, strerror(errno));
        break;
    default: look(path, step == DIRECTORY_STAT);
    }
}

/* Rate of a step, all ranks together. */
static double time_step(const struct work *work, enum step step, int files)
{
    char path[PATH];
    double slowest;
    bool looking = step == DIRECTORY_STAT || step == FILE_STAT;
    int owner = looking ? (rank + work->shift) % ranks : rank;
    place_of(work, owner, path);
    size_t length = strlen(path);
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    double start = MPI_Wtime();
    for (int i = 0; i < files; i++) {
        snprintf(path + length, sizeof path - length, "/%c.%d.%d", step < FILE_CREATE ? 'd' : 'f',
                 owner, i);
        act(step, path);
    }
    double time = MPI_Wtime() - start;
    TRY(MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    return (double)ranks * files / slowest;
}

static bool one_of(int option, const char *text, const char *no, const char *yes)
{
    if (strcmp(text, no) && strcmp(text, yes)) usage("-%c: '%s' is neither %s nor %s", option, text, no, yes);
    return strcmp(text, yes) == 0;
}

int main(int argc, char **argv)
{
    int files = 1000, repetitions = 3, option;
    const char *directory = ".";
    struct work work = {.private = false};
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":n:r:l:d:")) != -1) {
        if (option == 'n') files = (int)number('n', optarg, 1, 100000000);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, 100000);
        else if (option == 'd') directory = optarg;
        else if (option == 'l') work.private = one_of('l', optarg, "shared", "private");
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (strlen(directory) > sizeof work.top - 32) usage("-d: the name is too long");
    work.shift = find_shift();
    if (rank == 0)
        printf("metadata of %d ranks, %d files each, %s directory, %d repetitions, stat of rank + %d\n",
               ranks, files, work.private ? "private" : "shared", repetitions, work.shift);

    size_t n = (size_t)repetitions;
    double *rates = memory(STEPS * n, sizeof *rates);
    for (int r = -1; r < repetitions; r++) { /* -1 is the warm-up */
        int count = r < 0 ? (files + 9) / 10 : files;
        make_tree(&work, directory);
        for (enum step step = 0; step < STEPS; step++) {
            double rate = time_step(&work, step, count);
            if (r >= 0) rates[step * n + (size_t)r] = rate;
        }
        remove_tree(&work);
    }
    for (enum step step = 0; rank == 0 && step < STEPS; step++) {
        struct spread s = spread_of(rates + step * n, n);
        printf("%s min %.1f median %.1f max %.1f ops/s\n", NAME[step], s.min, s.median, s.max);
    }
    free(rates);
    if (rank == 0) printf("metadata finished, everything found and removed\n");
    MPI_Finalize();
    return 0;
}
