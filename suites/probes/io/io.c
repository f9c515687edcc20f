/* io - rate of writing and reading files, all ranks together (like IOR).
 *
 * Each rank writes a block of `b` bytes in transfers of `t` bytes, to a file of its own or to its part
 * of one shared file, by POSIX calls or by MPI-IO; then each reads the block of another rank, and every
 * byte is compared with what it must be (it depends on the writer, the place and the repetition).
 *
 *   rate = ranks * b / time     in MiB/s (2^20 bytes)
 *
 * Time is that of the slowest rank. Open, close and fsync (MPI_File_sync) are in it; making and
 * checking the bytes are not: a block is written and read in pieces of at most `m` bytes, and the
 * clock stands between the pieces, when all ranks fill or check their buffers. Each piece written is
 * synchronised before its clock stops.
 *
 * The reader is on another node than the writer where there are several, so that the cache of the
 * writer's node is not what is measured. On one node the pages are dropped by posix_fadvise before
 * reading: a request that a file system may refuse, so that on one node a read rate may still be that
 * of memory.
 *
 * Arguments: -a posix or mpiio (posix)      -l each or one: a file each, or one file (each)
 *            -c collective MPI-IO calls (with -a mpiio)
 *            -b block a rank, bytes (64M)   -t transfer, bytes (1M); a block is whole transfers
 *            -m piece, bytes (256M): memory a rank, whole transfers      -r repetitions (3)
 *            -d the directory to work in, which must exist (.)
 * Example:   mpirun -n 4 ./io -a mpiio -l one -b 1G -t 4M -d /scratch/me
 *            write min 1800.2 median 1840.1 max 1911.7 MiB/s
 *
 * Runs from 1 rank. The files are removed, unless it fails. Choose b so that all blocks together
 * exceed the servers' caches.
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
#include <unistd.h>

enum { PATH = 4096 };

static const char PROBE[] = "io";
static const char USAGE[] = "io [-a posix|mpiio] [-l each|one] [-c] [-b bytes] [-t bytes] [-m bytes] "
                            "[-r repetitions] [-d directory]";

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

struct job {
    bool mpiio, one, collective;
    int64_t block, transfer, piece;
    char stem[PATH / 2];
    int shift; /* ranks from a reader to the writer of what it reads */
};

struct file { int posix; MPI_File mpi; char path[PATH]; };

/* ---- what is in the files ---- */

static uint64_t key_of(int writer, int repetition)
{
    return ((uint64_t)writer + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)(repetition + 2) << 48);
}

/* The 8 bytes at 8 * place. An odd factor: no two places of a file have the same bytes. */
static uint64_t word_at(uint64_t key, uint64_t place) { return key ^ place * 0xd1342543de82ef95u; }

static void fill(uint64_t *words, int64_t bytes, uint64_t key, int64_t offset)
{
    uint64_t first = (uint64_t)offset / 8, n = (uint64_t)bytes / 8;
    for (uint64_t i = 0; i < n; i++) words[i] = word_at(key, first + i);
}

static void check(const uint64_t *words, int64_t bytes, uint64_t key, int64_t offset,
                  const char *path, int writer)
{
    uint64_t first = (uint64_t)offset / 8, n = (uint64_t)bytes / 8;
    for (uint64_t i = 0; i < n; i++)
        if (words[i] != word_at(key, first + i))
            fail("wrong data: %s: byte %" PRIu64 " of the block of rank %d: %016" PRIx64
                 ", not %016" PRIx64, path, 8 * (first + i), writer, words[i], word_at(key, first + i));
}

/* ---- files, in the two ways ---- */

static void open_file(const struct job *job, struct file *file, int writer, bool writing)
{
    if (job->one) snprintf(file->path, PATH, "%s.all", job->stem);
    else snprintf(file->path, PATH, "%s.%d", job->stem, writer);
    if (job->mpiio) {
        TRY(MPI_File_open(job->one ? MPI_COMM_WORLD : MPI_COMM_SELF, file->path,
                          writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY,
                          MPI_INFO_NULL, &file->mpi));
    } else {
        file->posix = open(file->path, writing ? O_CREAT | O_WRONLY : O_RDONLY, 0600);
        if (file->posix < 0) fail("open %s: %s", file->path, strerror(errno));
    }
}

static void sync_file(const struct job *job, struct file *file)
{
    if (job->mpiio) TRY(MPI_File_sync(file->mpi));
    else if (fsync(file->posix)) fail("fsync %s: %s", file->path, strerror(errno));
}

static void close_file(const struct job *job, struct file *file)
{
    if (job->mpiio) TRY(MPI_File_close(&file->mpi));
    else if (close(file->posix)) fail("close %s: %s", file->path, strerror(errno));
}

static void transfer_posix(struct file *file, char *data, int64_t bytes, int64_t offset, bool writing)
{
    while (bytes > 0) { /* a call may move less than was asked for */
        ssize_t moved = writing ? pwrite(file->posix, data, (size_t)bytes, offset)
                                : pread(file->posix, data, (size_t)bytes, offset);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0)
            fail("%s %s at %" PRId64 ": %s", writing ? "pwrite" : "pread", file->path, offset,
                 moved < 0 ? strerror(errno) : "end of file");
        data += moved;
        bytes -= moved;
        offset += moved;
    }
}

static void transfer_mpi(const struct job *job, struct file *file, char *data, int64_t bytes,
                         int64_t offset, bool writing)
{
    MPI_Status status;
    int n = (int)bytes, moved;
    if (writing && job->collective) TRY(MPI_File_write_at_all(file->mpi, offset, data, n, MPI_BYTE, &status));
    else if (writing) TRY(MPI_File_write_at(file->mpi, offset, data, n, MPI_BYTE, &status));
    else if (job->collective) TRY(MPI_File_read_at_all(file->mpi, offset, data, n, MPI_BYTE, &status));
    else TRY(MPI_File_read_at(file->mpi, offset, data, n, MPI_BYTE, &status));
    TRY(MPI_Get_count(&status, MPI_BYTE, &moved));
    if (moved != n)
        fail("%s at %" PRId64 ": %d of %d bytes", file->path, offset, moved, n);
}

/* Ask the kernel to forget the pages of a file. It does so only with pages already on disk. */
static void drop_cache(const struct job *job, int writer)
{
    struct job by_posix = *job;
    struct file file;
    by_posix.mpiio = false;
    open_file(&by_posix, &file, writer, false);
    posix_fadvise(file.posix, 0, 0, POSIX_FADV_DONTNEED); /* a wish: no matter if refused */
    close_file(&by_posix, &file);
}

/* ---- one block, all ranks together ---- */

/* Seconds until the slowest rank is here; the same on all ranks. */
static double slowest_since(double start)
{
    double time = MPI_Wtime() - start, slowest;
    TRY(MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    return slowest;
}

/* Write or read the block of a writer, piece by piece; MiB/s of all ranks. */
static double move_block(const struct job *job, int writer, int repetition, char *data, bool writing)
{
    struct file file = {.posix = -1};
    uint64_t key = key_of(writer, repetition);
    int64_t base = job->one ? (int64_t)writer * job->block : 0;
    double time = 0;
    for (int64_t begin = 0; begin < job->block; begin += job->piece) {
        int64_t end = begin + job->piece < job->block ? begin + job->piece : job->block;
        if (writing) fill((uint64_t *)data, end - begin, key, begin);
        TRY(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        if (begin == 0) open_file(job, &file, writer, writing);
        for (int64_t at = begin; at < end; at += job->transfer) {
            char *place = data + (at - begin);
            if (job->mpiio) transfer_mpi(job, &file, place, job->transfer, base + at, writing);
            else transfer_posix(&file, place, job->transfer, base + at, writing);
        }
        if (writing) sync_file(job, &file);
        if (end == job->block) close_file(job, &file);
        time += slowest_since(start);
        if (!writing) check((uint64_t *)data, end - begin, key, begin, file.path, writer);
    }
    return (double)ranks * (double)job->block / 1048576 / time;
}

static void write_and_read(const struct job *job, int repetition, char *data, double *wrote, double *read)
{
    int writer = (rank + job->shift) % ranks;
    *wrote = move_block(job, rank, repetition, data, true);
    drop_cache(job, rank);
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    memset(data, 0, (size_t)job->piece);
    *read = move_block(job, writer, repetition, data, false);
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    char path[PATH];
    if (job->one) snprintf(path, PATH, "%s.all", job->stem);
    else snprintf(path, PATH, "%s.%d", job->stem, rank);
    if ((rank == 0 || !job->one) && unlink(path)) fail("unlink %s: %s", path, strerror(errno));
    TRY(MPI_Barrier(MPI_COMM_WORLD));
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
        snprintf(job->stem, sizeof job->stem, "%s/io.XXXXXX", directory);
        int file = mkstemp(job->stem);
        if (file < 0) fail("mkstemp %s: %s", job->stem, strerror(errno));
        close(file);
        unlink(job->stem);
    }
    TRY(MPI_Bcast(job->stem, sizeof job->stem, MPI_CHAR, 0, MPI_COMM_WORLD));
}

static bool one_of(int option, const char *text, const char *no, const char *yes)
{
    if (strcmp(text, no) && strcmp(text, yes)) usage("-%c: '%s' is neither %s nor %s", option, text, no, yes);
    return strcmp(text, yes) == 0;
}

static void check_sizes(const struct job *job)
{
    if (job->transfer % 8) usage("-t: transfer size must be a multiple of 8");
    if (job->block % job->transfer) usage("-b: block size must be a multiple of the transfer size (-t)");
    if (job->piece < job->transfer) usage("-m: a piece must hold at least one transfer (-t)");
    if (job->collective && !job->mpiio) usage("-c: only with -a mpiio");
    if (job->collective && !job->one) usage("-c: only with -l one");
}

int main(int argc, char **argv)
{
    struct job job = {.block = 64 << 20, .transfer = 1 << 20, .piece = 256 << 20};
    int repetitions = 3, option;
    const char *directory = ".";
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":a:l:cb:t:m:r:d:")) != -1) {
        if (option == 'a') job.mpiio = one_of('a', optarg, "posix", "mpiio");
        else if (option == 'l') job.one = one_of('l', optarg, "each", "one");
        else if (option == 'c') job.collective = true;
        else if (option == 'b') job.block = number('b', optarg, 8, (int64_t)1 << 50);
        else if (option == 't') job.transfer = number('t', optarg, 8, 1 << 30);
        else if (option == 'm') job.piece = number('m', optarg, 8, (int64_t)1 << 40);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, 100000);
        else if (option == 'd') directory = optarg;
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (strlen(directory) > sizeof job.stem - 32) usage("-d: the name is too long");
    check_sizes(&job);
    if (job.piece > job.block) job.piece = job.block;
    job.piece -= job.piece % job.transfer;
    job.shift = find_shift();
    if (rank == 0)
        printf("io of %d ranks, %s, %s, block %" PRId64 " transfer %" PRId64
               " bytes, %d repetitions, reads of rank + %d\n",
               ranks, job.mpiio ? job.collective ? "collective mpiio" : "mpiio" : "posix",
               job.one ? "one file" : "a file each", job.block, job.transfer, repetitions, job.shift);

    choose_stem(&job, directory);
    size_t n = (size_t)repetitions;
    double *wrote = memory(n, sizeof *wrote), *read = memory(n, sizeof *read), unused;
    char *data = memory((size_t)job.piece, 1);
    struct job warm_up = job;
    warm_up.block = warm_up.piece = job.transfer;
    write_and_read(&warm_up, -1, data, &unused, &unused);
    for (int r = 0; r < repetitions; r++) write_and_read(&job, r, data, &wrote[r], &read[r]);
    if (rank == 0) {
        struct spread w = spread_of(wrote, n), d = spread_of(read, n);
        printf("write min %.1f median %.1f max %.1f MiB/s\n", w.min, w.median, w.max);
        printf("read min %.1f median %.1f max %.1f MiB/s\n", d.min, d.median, d.max);
        printf("io finished, every byte correct\n");
    }
    free(data);
    free(wrote);
    free(read);
    MPI_Finalize();
    return 0;
}
