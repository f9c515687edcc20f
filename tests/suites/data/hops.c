/* Delays messages by the level of the two hosts, n001 and so on: 1 ms within a pair of hosts, 2 ms
 * within four, 4 ms beyond, as if the network were slower from level to level. A busy host adds some
 * tenths of a millisecond. Loaded before MPI (LD_PRELOAD), it takes the place of MPI_Send, MPI_Isend
 * and MPI_Sendrecv (PMPI). */
#define _GNU_SOURCE 1
#include <mpi.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int me = -1, size;
static int *host_of;

static void start(void)
{
    char name[64] = "";
    gethostname(name, sizeof name - 1);
    int host = atoi(name + 1);
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

static void hop(int to)
{
    if (me < 0 || to < 0 || to >= size) return;
    int a = host_of[me] - 1, b = host_of[to] - 1;
    if (a < 0 || b < 0 || a == b) return;
    struct timespec delay = {0, a / 2 == b / 2 ? 1000000 : a / 4 == b / 4 ? 2000000 : 4000000};
    nanosleep(&delay, NULL);
}

int MPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    hop(to);
    return PMPI_Send(data, n, type, to, tag, comm);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    hop(to);
    return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    hop(to);
    return PMPI_Sendrecv(out, n, type, to, tag, in, m, in_type, from, in_tag, comm, status);
}
