/* One k-point of a chain of atoms with two orbitals each: eigenvalues of the Hamiltonian by Jacobi's
   method, and the energy of the occupied half, weighted.

     ./kpoint NUMBER OF             k-point NUMBER of OF, from 0 on

   Prints `k NUMBER weight W energy E`. The energies of all k-points sum up to that of the whole chain,
   whichever host computed them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 32 };

static double h[N][N];

static void rotate(int p, int q) {
    double theta = (h[q][q] - h[p][p]) / (2 * h[p][q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int i = 0; i < N; i++) {
        double a = h[i][p], b = h[i][q];
        h[i][p] = c * a - s * b, h[i][q] = s * a + c * b;
    }
    for (int i = 0; i < N; i++) {
        double a = h[p][i], b = h[q][i];
        h[p][i] = c * a - s * b, h[q][i] = s * a + c * b;
    }
}

int main(int count, char **words) {
    if (count != 3 || atoi(words[2]) < 1) {
        fprintf(stderr, "usage: kpoint NUMBER OF\n");
        return 2;
    }
    int number = atoi(words[1]), of = atoi(words[2]);
    double k = acos(-1.0) * (number + 0.5) / of, energy = 0, off = 1;
    for (int i = 0; i < N; i++) {
        h[i][i] = i % 2 ? 1 : -1;
        if (i) h[i][i - 1] = h[i - 1][i] = -1 - 0.5 * (i % 2) * cos(k);
    }
    h[0][N - 1] = h[N - 1][0] = -cos(k);
    for (int sweep = 0; sweep < 60 && off > 1e-24; sweep++) {
        off = 0;
        for (int p = 0; p < N; p++)
            for (int q = p + 1; q < N; q++)
                if (fabs(h[p][q]) > 1e-14) off += h[p][q] * h[p][q], rotate(p, q);
    }
    for (int i = 0; i < N; i++) energy += h[i][i] < 0 ? 2 * h[i][i] : 0;
    printf("k %d weight %.10f energy %.10f\n", number, 1.0 / of, energy / of);
    return off > 1e-20;
}
