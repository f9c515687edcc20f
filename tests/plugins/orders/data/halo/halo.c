/* halo - exchanges halos on a grid of X x Y ranks, and says whom it sent how much.
 *
 * Arguments: X, Y, bytes to neighbours in X, bytes to those in Y, steps. Every send goes through
 * another function of MPI in turn. Each rank prints `sent FROM TO MESSAGES BYTES` in ranks of
 * MPI_COMM_WORLD, as it knows them by its place in the grid.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, shape[2], at[2];

static int neighbour(int axis, int step) { /* not periodic; -1: none */
    int to[2] = {at[0], at[1]};
    to[axis] += step;
    return to[axis] < 0 || to[axis] >= shape[axis] ? -1 : to[0] * shape[1] + to[1];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
    int bytes[2] = {atoi(argv[3]), atoi(argv[4])}, steps = atoi(argv[5]);
    for (int i = 0; i < 2; i++) shape[i] = atoi(argv[1 + i]);
    at[0] = rank / shape[1], at[1] = rank % shape[1];
    MPI_Comm line; /* ranks of a row, numbered backwards: not as in MPI_COMM_WORLD */
    MPI_Comm_split(MPI_COMM_WORLD, at[0], -at[1], &line);
    char *out = calloc(1, 1 << 20), *in = malloc(1 << 20);
    for (int step = 0; step < steps; step++) {
        for (int axis = 0; axis < 2; axis++)
            for (int way = -1; way <= 1; way += 2) {
                int to = neighbour(axis, way), from = neighbour(axis, -way);
                MPI_Comm comm = axis ? line : MPI_COMM_WORLD;
                if (axis && to >= 0) to = shape[1] - 1 - to % shape[1];
                if (axis && from >= 0) from = shape[1] - 1 - from % shape[1];
                MPI_Sendrecv(out, bytes[axis], MPI_CHAR, to < 0 ? MPI_PROC_NULL : to, 0, in, 1 << 20,
                             MPI_CHAR, from < 0 ? MPI_PROC_NULL : from, 0, comm, MPI_STATUS_IGNORE);
            }
        double sum = 1;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int axis = 0; axis < 2; axis++)
        for (int way = -1; way <= 1; way += 2)
            if (neighbour(axis, way) >= 0)
                printf("sent %d %d %d %ld\n", rank, neighbour(axis, way), steps,
                       (long)steps * bytes[axis]);
    MPI_Finalize();
    return 0;
}
