/* every_call - calls what the recorder of patterns wraps, and prints what it must have counted.
 *
 * `sent FROM TO MESSAGES BYTES` and `call NAME NUMBER BYTES` are tallied here by hand, beside each
 * call, in ranks of MPI_COMM_WORLD. Four ranks. Arguments: `threads` sends from four threads at once
 * (MPI_THREAD_MULTIPLE) instead; `silent` leaves rank 1 without MPI_Finalize.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 4, CALLS = 64 };
static long messages[N][N], bytes[N][N];
static struct {
    const char *name;
    long number, bytes;
} calls[CALLS];
static int rank;

static void called(const char *name, long size) {
    int i = 0;
    while (calls[i].name && strcmp(calls[i].name, name)) i++;
    calls[i].name = name, calls[i].number++, calls[i].bytes += size;
}

static void sent(const char *name, int to, long size) {
    messages[rank][to]++, bytes[rank][to] += size;
    if (name) called(name, size);
}

static void got(int from, long size) { messages[from][rank]++, bytes[from][rank] += size; }

static void *sender(void *argument) {
    char out[100] = "", in[100];
    int tag = (int)(long)argument;
    for (int i = 0; i < 150; i++)
        MPI_Sendrecv(out, 100, MPI_CHAR, rank ^ 1, tag, in, 100, MPI_CHAR, rank ^ 1, tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void threads(void) {
    pthread_t thread[4];
    for (long i = 0; i < 4; i++) pthread_create(&thread[i], NULL, sender, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 600; i++) sent("MPI_Sendrecv", rank ^ 1, 100);
}

static void point_to_point(void) {
    static double out[4096], in[4096];
    static char attached[1 << 20];
    int to = (rank + 1) % N, from = (rank + N - 1) % N, size = sizeof attached;
    MPI_Request wait[2];
    MPI_Datatype pairs; /* 3 times 2 of 5 doubles: 48 bytes, though it spans more */
    MPI_Type_vector(3, 2, 5, MPI_DOUBLE, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Buffer_attach(attached, size);
#define RECEIVE MPI_Irecv(in, sizeof in, MPI_BYTE, from, 0, MPI_COMM_WORLD, &wait[0])
#define SEND(name, n, type, size)                                 \
    RECEIVE;                                                      \
    MPI_##name(out, n, type, to, 0, MPI_COMM_WORLD);              \
    sent("MPI_" #name, to, size);                                 \
    MPI_Wait(&wait[0], MPI_STATUS_IGNORE)
#define ISEND(name, n, type, size)                                \
    RECEIVE;                                                      \
    MPI_Barrier(MPI_COMM_WORLD), called("MPI_Barrier", 0);        \
    MPI_##name(out, n, type, to, 0, MPI_COMM_WORLD, &wait[1]);    \
    sent("MPI_" #name, to, size);                                 \
    MPI_Waitall(2, wait, MPI_STATUSES_IGNORE)
    SEND(Send, 3, MPI_DOUBLE, 24);
    SEND(Bsend, 1, pairs, 48);
    ISEND(Isend, 4096, MPI_DOUBLE, 32768);
    ISEND(Issend, 2, pairs, 96);
    ISEND(Ibsend, 5, MPI_CHAR, 5);
    ISEND(Irsend, 0, MPI_INT, 0);
    RECEIVE;
    MPI_Barrier(MPI_COMM_WORLD), called("MPI_Barrier", 0);
    MPI_Rsend(out, 7, MPI_SHORT, to, 0, MPI_COMM_WORLD), sent("MPI_Rsend", to, 14);
    MPI_Wait(&wait[0], MPI_STATUS_IGNORE);
    RECEIVE;
    MPI_Ssend(out, 1, MPI_INT, to, 0, MPI_COMM_WORLD), sent("MPI_Ssend", to, 4);
    MPI_Wait(&wait[0], MPI_STATUS_IGNORE);
    MPI_Send(out, 9, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* to nobody: not counted */
    MPI_Sendrecv(out, 2, MPI_FLOAT, rank, 0, in, 2, MPI_FLOAT, rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    sent("MPI_Sendrecv", rank, 8);
    MPI_Sendrecv_replace(out, 3, MPI_INT, to, 0, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sent("MPI_Sendrecv_replace", to, 12);
    MPI_Send_init(out, 10, MPI_INT, to, 0, MPI_COMM_WORLD, &wait[1]);
    MPI_Recv_init(in, 10, MPI_INT, from, 0, MPI_COMM_WORLD, &wait[0]);
    for (int i = 0; i < 3; i++) {
        if (i) MPI_Startall(2, wait);
        else MPI_Start(&wait[0]), MPI_Start(&wait[1]);
        sent("MPI_Send_init", to, 40);
        MPI_Waitall(2, wait, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&wait[0]), MPI_Request_free(&wait[1]);
    MPI_Buffer_detach(out, &size);
    MPI_Type_free(&pairs);
}

static void sub_communicators(void) {
    int out[N] = {0}, in[N], two = 2;
    MPI_Comm half, between; /* 3 1 and 2 0: ranks are not those of MPI_COMM_WORLD */
    for (int again = 0; again < 3; again++) { /* their handles are used again after MPI_Comm_free */
        MPI_Comm_split(MPI_COMM_WORLD, again == 1 ? rank / 2 : rank % 2, -rank, &half);
        int peer = again == 1 ? rank ^ 1 : rank ^ 2, own;
        MPI_Comm_rank(half, &own);
        MPI_Sendrecv(out, 1, MPI_INT, 1 - own, 0, in, 1, MPI_INT, 1 - own, 0, half,
                     MPI_STATUS_IGNORE);
        sent("MPI_Sendrecv", peer, 4);
        MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, half);
        got(peer, 4), called("MPI_Alltoall", 8);
        if (again == 2) {
            MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, 0, &between);
            int other = 3 - own * 2 - (rank % 2); /* rank own of 3 1 or of 2 0, the other half */
            MPI_Sendrecv(out, 2, MPI_INT, own, 0, in, 2, MPI_INT, own, 0, between,
                         MPI_STATUS_IGNORE);
            sent("MPI_Sendrecv", other, 8);
            MPI_Comm_free(&between);
        }
        MPI_Comm_free(&half);
    }
    int numbers[N] = {0}, offsets[N] = {0}, from = (rank + N - 1) % N, in_numbers[N] = {0};
    numbers[(rank + 1) % N] = two, in_numbers[from] = two;
    MPI_Alltoallv(out, numbers, offsets, MPI_INT, in, in_numbers, offsets, MPI_INT, MPI_COMM_WORLD);
    got(from, 8), called("MPI_Alltoallv", 8);
}

static void collectives(void) {
    static double a[64], b[64];
    int numbers[N] = {1, 2, 3, 4}, offsets[N] = {0, 1, 3, 6};
    MPI_Request wait;
    MPI_Bcast(a, 8, MPI_DOUBLE, 0, MPI_COMM_WORLD), called("MPI_Bcast", 64);
    MPI_Allreduce(MPI_IN_PLACE, a, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    called("MPI_Allreduce", 16);
    MPI_Iallreduce(a, b, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &wait);
    called("MPI_Iallreduce", 16), MPI_Wait(&wait, MPI_STATUS_IGNORE);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 4, MPI_DOUBLE, MPI_COMM_WORLD);
    called("MPI_Allgather", 32);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 4, MPI_DOUBLE, MPI_COMM_WORLD);
    called("MPI_Alltoall", 128); /* of all ranks: no messages */
    MPI_Gather(rank ? a : MPI_IN_PLACE, 1, MPI_DOUBLE, rank ? NULL : b, 1, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    called("MPI_Gather", 8);
    MPI_Gatherv(rank ? a : MPI_IN_PLACE, numbers[rank], MPI_DOUBLE, rank ? NULL : b,
                rank ? NULL : numbers, rank ? NULL : offsets, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    called("MPI_Gatherv", 8 * numbers[rank]);
    MPI_Scatterv(rank ? NULL : a, rank ? NULL : numbers, rank ? NULL : offsets, MPI_DOUBLE, b,
                 numbers[rank], MPI_DOUBLE, 0, MPI_COMM_WORLD);
    called("MPI_Scatterv", 8 * numbers[rank]);
    MPI_Reduce_scatter(a, b, numbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    called("MPI_Reduce_scatter", 80);
    MPI_Scan(a, b, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), called("MPI_Scan", 8);
    MPI_Bcast(a, 1 << 30, MPI_INT, 0, MPI_COMM_SELF); /* more bytes than an int can have */
    called("MPI_Bcast", 1L << 32);
}

static void neighbours(void) {
    MPI_Comm line, ring;
    int out[8] = {0}, in[8], length = N, periodic = 0, to = (rank + 1) % N;
    int from = (rank + N - 1) % N;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &length, &periodic, 0, &line);
    MPI_Neighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, line);
    if (rank > 0) sent(NULL, rank - 1, 8);
    if (rank < N - 1) sent(NULL, rank + 1, 8);
    called("MPI_Neighbor_alltoall", 8 * ((rank > 0) + (rank < N - 1)));
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    MPI_Neighbor_allgather(out, 3, MPI_INT, in, 3, MPI_INT, ring);
    sent(NULL, to, 12), called("MPI_Neighbor_allgather", 12);
    MPI_Comm_free(&line), MPI_Comm_free(&ring);
}

static void one_sided(void) {
    int *base, own[4] = {0}, to = (rank + 1) % N;
    MPI_Win window;
    MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Win_fence(0, window);
    MPI_Put(own, 2, MPI_INT, to, 0, 2, MPI_INT, window), sent("MPI_Put", to, 8);
    MPI_Win_fence(0, window);
    MPI_Get(own, 3, MPI_INT, to, 0, 3, MPI_INT, window), got(to, 12), called("MPI_Get", 12);
    MPI_Win_fence(0, window);
    MPI_Accumulate(own, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, window);
    sent("MPI_Accumulate", to, 4);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    int level, with_threads = argc > 1 && !strcmp(argv[1], "threads");
    MPI_Init_thread(&argc, &argv, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (with_threads && level != MPI_THREAD_MULTIPLE) printf("no threads\n");
    else if (with_threads) threads();
    else point_to_point(), sub_communicators(), collectives(), neighbours(), one_sided();
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++)
            if (messages[a][b]) printf("sent %d %d %ld %ld\n", a, b, messages[a][b], bytes[a][b]);
    for (int i = 0; i < CALLS && calls[i].name; i++)
        printf("call %s %ld %ld\n", calls[i].name, calls[i].number, calls[i].bytes);
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "silent")) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) _exit(0);
    }
    MPI_Finalize();
    return 0;
}
