/* The load of a drill: writes blocks to a file, each to the disk, without a pause, until it is told
 * to end; then reads every block back.
 *
 *   load FOLDER STOP LOG MEBIBYTES
 *
 * It writes FOLDER/drill.RANK, of MEBIBYTES, again and again, until the file STOP is there. A write
 * that fails is tried again, with the file opened anew, so a server may go away and come back. Each
 * block has the number of its write, which the end compares with what was acknowledged last.
 *
 * To stdout, and as one line to LOG (see drill.sh):
 *   TIME load RANK OPERATIONS LONGEST_US AT_US LOST
 * LONGEST_US is the longest time between two writes that went well, AT_US when it began.
 * Exit codes: 0 all data are right, 3 blocks are lost or wrong, 1 nothing could be written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, WORDS = BLOCK / 8, RETRY_US = 50000, GIVE_UP_US = 60000000 };

static int64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void pause_us(long us) {
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* The rank by the launcher's variable; the process id where there is none. */
static long own_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID", "PALS_RANKID", "ALPS_APP_PE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL)
            return atol(getenv(names[i]));
    return (long)getpid();
}

static uint64_t word_of(uint64_t number, uint64_t rank, uint64_t index) {
    return number * 0x9E3779B97F4A7C15u + rank * 0xD1B54A32D192ED03u + index;
}

static void fill(uint64_t *block, uint64_t number, uint64_t rank) {
    for (uint64_t i = 0; i < WORDS; i++)
        block[i] = word_of(number, rank, i);
}

/* Writes all of a block and waits for the disk; false where any of it failed. */
static bool write_block(int file, const void *block, off_t at) {
    return pwrite(file, block, BLOCK, at) == BLOCK && fdatasync(file) == 0;
}

/* Reads all of a block from the file system, trying again while a server may be away. */
static bool read_block(const char *path, int *file, void *block, off_t at) {
    for (int64_t until = now_us() + GIVE_UP_US; now_us() < until; pause_us(RETRY_US)) {
        if (*file < 0)
            *file = open(path, O_RDONLY | O_CLOEXEC);
        if (*file >= 0 && pread(*file, block, BLOCK, at) == BLOCK)
            return true;
        if (*file >= 0)
            close(*file);
        *file = -1;
    }
    return false;
}

static long count_lost(const char *path, const uint64_t *written, long blocks, uint64_t rank) {
    uint64_t *found = malloc(BLOCK), *wanted = malloc(BLOCK);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    long lost = 0;
    if (found == NULL || wanted == NULL)
        return blocks;
    if (file >= 0)
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    for (long i = 0; i < blocks; i++) {
        if (written[i] == 0)
            continue;
        fill(wanted, written[i], rank);
        if (!read_block(path, &file, found, (off_t)i * BLOCK) || memcmp(found, wanted, BLOCK) != 0)
            lost++;
    }
    if (file >= 0)
        close(file);
    free(found);
    free(wanted);
    return lost;
}

static bool is_told_to_end(const char *stop) {
    struct stat about;
    return stat(stop, &about) == 0;
}

int main(int argc, char **argv) {
    if (argc != 5 || atol(argv[4]) < 1) {
        fprintf(stderr, "usage: load FOLDER STOP LOG MEBIBYTES\n");
        return 1;
    }
    long rank = own_rank(), blocks = atol(argv[4]) * ((1 << 20) / BLOCK);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/drill.%ld", argv[1], rank);
    uint64_t *written = calloc((size_t)blocks, sizeof *written), *block = malloc(BLOCK);
    if (written == NULL || block == NULL)
        return 1;
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    uint64_t operations = 0;
    int64_t last = now_us(), longest = 0, longest_at = last;
    while (!is_told_to_end(argv[2])) {
        long place = (long)(operations % (uint64_t)blocks);
        fill(block, operations + 1, (uint64_t)rank);
        if (file < 0)
            file = open(path, O_RDWR | O_CLOEXEC);
        if (file < 0 || !write_block(file, block, (off_t)place * BLOCK)) {
            if (file >= 0)
                close(file);
            file = -1;
            pause_us(RETRY_US);
            continue;
        }
        int64_t time = now_us();
        if (time - last > longest) {
            longest = time - last;
            longest_at = last;
        }
        last = time;
        written[place] = ++operations;
    }
    int64_t end = now_us();
    if (end - last > longest) {
        longest = end - last;
        longest_at = last;
    }
    if (file >= 0)
        close(file);
    long lost = count_lost(path, written, blocks, (uint64_t)rank);
    printf("rank %ld: %" PRIu64 " writes, at most %.3f s without one, %ld blocks lost\n", rank,
           operations, (double)longest * 1e-6, lost);
    FILE *log = fopen(argv[3], "a");
    if (log == NULL || fprintf(log, "%" PRId64 " load %ld %" PRIu64 " %" PRId64 " %" PRId64 " %ld\n",
                               now_us(), rank, operations, longest, longest_at, lost) < 0 ||
        fclose(log) != 0) {
        fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
        return 1;
    }
    unlink(path);
    return operations == 0 ? 1 : lost == 0 ? 0 : 3;
}
