/* One k-point of a chain of atoms with two orbitals each: the energy of the occupied half of the
   eigenvalues of the Hamiltonian, weighted.

     ./kpoint NUMBER OF             k-point NUMBER of OF, from 0 on
     mpirun -np 2 ./kpoint_mpi ...  the same by two ranks (compiled with -DWITH_MPI)

   Prints `k NUMBER weight W energy E ranks R`. The energies of all k-points sum up to that of the
   whole chain, whichever hosts and however many ranks computed them. Each rank finds every R-th of
   the eigenvalues by bisection: H - x has as many eigenvalues below 0 as negative pivots (Sylvester's
   law of inertia). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

enum { N = 32 };

static double h[N][N];

static int below(double x) { /* how many eigenvalues are */
    static double a[N][N];
    int found = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = h[i][j] - (i == j ? x : 0);
    for (int k = 0; k < N; k++) {
        double pivot = fabs(a[k][k]) < 1e-300 ? 1e-300 : a[k][k];
        found += pivot < 0;
        for (int i = k + 1; i < N; i++) {
            double share = a[i][k] / pivot;
            for (int j = k + 1; j < N; j++) a[i][j] -= share * a[k][j];
        }
    }
    return found;
}

static double eigenvalue(int number) { /* of those below 0, from 0 on */
    double low = -4, high = 0; /* Gershgorin: all are between -4 and 4 */
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (below(middle) > number) high = middle; else low = middle;
    }
    return (low + high) / 2;
}

int main(int count, char **words) {
    int rank = 0, ranks = 1;
#ifdef WITH_MPI
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
    if (count != 3 || atoi(words[2]) < 1) {
        fprintf(stderr, "usage: kpoint NUMBER OF\n");
        return 2;
    }
    int number = atoi(words[1]), of = atoi(words[2]);
    double k = acos(-1.0) * (number + 0.5) / of, energy = 0;
    for (int i = 0; i < N; i++) {
        h[i][i] = i % 2 ? 1 : -1;
        if (i) h[i][i - 1] = h[i - 1][i] = -1 - 0.5 * (i % 2) * cos(k);
    }
    h[0][N - 1] = h[N - 1][0] = -cos(k);
    int occupied = below(0);
    for (int i = rank; i < occupied; i += ranks) energy += 2 * eigenvalue(i);
#ifdef WITH_MPI
    double own = energy;
    MPI_Reduce(&own, &energy, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
#endif
    if (!rank) printf("k %d weight %.10f energy %.10f ranks %d\n", number, 1.0 / of, energy / of, ranks);
    return 0;
}
