/* Delays messages by the level of the two hosts, n001 and so on: 1 ms within a pair of hosts, 2 ms
 * within four, 4 ms beyond, as if the network were slower from level to level. A busy host adds some
 * tenths of a millisecond. Loaded before MPI (LD_PRELOAD), it takes the place of MPI_Send, MPI_Isend,
 * MPI_Sendrecv, MPI_Bcast and MPI_Alltoall (PMPI). A broadcast is delayed as a message to the root,
 * an all-to-all as one to the farthest rank.
 *
 *   HOPS_US=50,100,200    other delays, in us; those below 1 ms are spun, as a sleep is not as exact
 *   HOPS_PAIR=3,7,300     messages between n003 and n007 take 300 us more
 *   HOPS_ODD=1000         messages from a CPU of odd number take 1000 us more
 */
#define _GNU_SOURCE 1
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int me = -1, size;
static int *host_of;
static int delays[3] = {1000, 2000, 4000};
static int pair[3], odd;

static void numbers(const char *name, int *values, int count)
{
    const char *text = getenv(name);
    for (int i = 0; text && i < count; i++) {
        char *end;
        values[i] = (int)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : NULL;
    }
}

static void start(void)
{
    char name[64] = "";
    gethostname(name, sizeof name - 1);
    int host = atoi(name + 1);
    numbers("HOPS_US", delays, 3);
    numbers("HOPS_PAIR", pair, 3);
    numbers("HOPS_ODD", &odd, 1);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    host_of = malloc((size_t)size * sizeof *host_of);
    PMPI_Allgather(&host, 1, MPI_INT, host_of, 1, MPI_INT, MPI_COMM_WORLD);
}

int MPI_Init(int *argc, char ***argv)
{
    int code = PMPI_Init(argc, argv);
    start();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level)
{
    int code = PMPI_Init_thread(argc, argv, wanted, level);
    start();
    return code;
}

static int delay_to(int to) /* us */
{
    if (me < 0 || to < 0 || to >= size) return 0;
    int a = host_of[me], b = host_of[to];
    if (a < 1 || b < 1 || a == b) return 0;
    int us = delays[(a - 1) / 2 == (b - 1) / 2 ? 0 : (a - 1) / 4 == (b - 1) / 4 ? 1 : 2];
    if ((a == pair[0] && b == pair[1]) || (a == pair[1] && b == pair[0])) us += pair[2];
    return us + (odd && sched_getcpu() % 2 ? odd : 0);
}

static void wait_for(int us)
{
    if (us >= 1000) {
        struct timespec delay = {us / 1000000, us % 1000000 * 1000L};
        nanosleep(&delay, NULL);
        return;
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000L + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

int MPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    wait_for(delay_to(to));
    return PMPI_Send(data, n, type, to, tag, comm);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    wait_for(delay_to(to));
    return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    wait_for(delay_to(to));
    return PMPI_Sendrecv(out, n, type, to, tag, in, m, in_type, from, in_tag, comm, status);
}

int MPI_Bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    wait_for(delay_to(root));
    return PMPI_Bcast(data, n, type, root, comm);
}

int MPI_Alltoall(const void *out, int n, MPI_Datatype type, void *in, int m, MPI_Datatype in_type,
                 MPI_Comm comm)
{
    int farthest = 0;
    for (int to = 0; to < size; to++)
        if (delay_to(to) > farthest) farthest = delay_to(to);
    wait_for(farthest);
    return PMPI_Alltoall(out, n, type, in, m, in_type, comm);
}
