/* fortran_calls - calls MPI by the symbols of Fortran, as gfortran makes them of mpif.h and mpi_f08.
 *
 * The handles are those of Open MPI's mpif.h. Prints what must have been counted. */
#include <stdio.h>

extern void mpi_init_(int *), mpi_finalize_(int *), mpi_comm_rank_(int *, int *, int *),
    mpi_comm_size_(int *, int *, int *), mpi_request_free_(int *, int *),
    mpi_send_(void *, int *, int *, int *, int *, int *, int *),
    mpi_isend_f08_(void *, int *, int *, int *, int *, int *, int *, int *),
    mpi_send_init_(void *, int *, int *, int *, int *, int *, int *, int *), mpi_start_(int *, int *),
    mpi_recv_(void *, int *, int *, int *, int *, int *, int *, int *), mpi_wait_(int *, int *, int *),
    mpi_alltoall_(void *, int *, int *, void *, int *, int *, int *, int *),
    mpi_allreduce_(void *, void *, int *, int *, int *, int *, int *);

int main(void) {
    int world = 0, doubles = 17, sum = 3, error, rank, size, tag = 5, n = 10, one = 1, request;
    int status[16];
    double out[100] = {0}, in[100];
    mpi_init_(&error);
    mpi_comm_rank_(&world, &rank, &error);
    mpi_comm_size_(&world, &size, &error);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    mpi_send_(out, &n, &doubles, &to, &tag, &world, &error);
    mpi_recv_(in, &n, &doubles, &from, &tag, &world, status, &error);
    mpi_isend_f08_(out, &one, &doubles, &to, &tag, &world, &request, NULL);
    mpi_recv_(in, &n, &doubles, &from, &tag, &world, status, &error);
    mpi_wait_(&request, status, &error);
    mpi_send_init_(out, &n, &doubles, &to, &tag, &world, &request, &error);
    for (int i = 0; i < 3; i++) {
        mpi_start_(&request, &error);
        mpi_recv_(in, &n, &doubles, &from, &tag, &world, status, &error);
        mpi_wait_(&request, status, &error);
    }
    mpi_request_free_(&request, &error);
    mpi_alltoall_(out, &n, &doubles, in, &n, &doubles, &world, &error);
    mpi_allreduce_(out, in, &one, &doubles, &sum, &world, &error);
    printf("sent %d %d 5 328\ncall MPI_Send 1 80\ncall MPI_Isend 1 8\ncall MPI_Send_init 3 240\n"
           "call MPI_Alltoall 1 %d\ncall MPI_Allreduce 1 8\n", rank, to, 80 * size);
    mpi_finalize_(&error);
    return 0;
}
