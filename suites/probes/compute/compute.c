/* compute - floating-point rate of one node: a blocked matrix product, with OpenMP.
 *
 *   C = A B, three matrices of n x n doubles
 *   rate = 2 n^3 / t     in GFLOP/s (10^9 operations a second): n^3 products and n^3 sums
 *
 * Plain C that a compiler can vectorise, not a tuned library: it compares cores, nodes and compiler
 * flags with each other, and shows a core that runs slowly. Give -O3 and the machine's own instruction
 * set (-march=native) in CFLAGS to come near to what the hardware can do.
 *
 * Blocks: TILE x DEPTH elements of A and of B are copied to lie together in the second-level cache;
 * ROWS x COLUMNS results at a time are summed in registers.
 *
 * The result is checked with a random vector x (Freivalds): C x must be A (B x). It passes if
 *
 *   residual = max_i |(C x)_i - (A (B x))_i| / (eps max_i (|A| (|B| |x|))_i) < 1
 *
 * with eps = 2.2e-16. Rounding alone gives 0.01 to 0.3; one wrong element of C shows.
 *
 * Arguments: -n order of the matrices; default 1024 * cube root of the threads, so that the time
 *               stays about the same; rounded up to a multiple of 64
 *            -r repetitions (5), one more is the warm-up
 * Example:   cc -O3 -march=native -fopenmp -I../common -o compute compute.c -lm && OMP_NUM_THREADS=8 ./compute
 *            rate min 101.2 median 103.9 max 104.4 GFLOP/s
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A vector of WIDTH doubles, as wide as a register; with -DWIDTH=1 no more than C11 is needed. */
#ifndef WIDTH
#if defined(__AVX512F__)
#define WIDTH 8
#elif defined(__AVX__)
#define WIDTH 4
#else
#define WIDTH 2
#endif
#endif
#if WIDTH > 1
typedef double vector __attribute__((vector_size(8 * WIDTH)));
#else
typedef double vector;
#endif

enum { ROWS = 4, COLUMNS = 2 * WIDTH, TILE = 64, DEPTH = 192, MOST_REPETITIONS = 100000 };

static const char PROBE[] = "compute";
static const char USAGE[] = "compute [-n order] [-r repetitions]";

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

static double *aligned(size_t count)
{
    void *p = aligned_alloc(4096, (count * sizeof(double) + 4095) / 4096 * 4096);
    if (!p) fail("no memory for %zu doubles", count);
    return p;
}

/* A number between -1 and 1 that depends on its place only (SplitMix64). */
static double random_at(uint64_t place)
{
    uint64_t z = (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
}

/* Rows are touched first by the threads that will use them. */
static void fill(double *m, size_t n, uint64_t seed)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) m[i * n + j] = random_at((seed << 56) + i * n + j);
}

/* c[r][0 .. COLUMNS) += low, high */
static void add_row(double *c, vector low, vector high)
{
    double sums[COLUMNS];
    memcpy(sums, &low, sizeof low);
    memcpy(sums + WIDTH, &high, sizeof high);
    for (int j = 0; j < COLUMNS; j++) c[j] += sums[j];
}

/* c[ROWS][COLUMNS] += left (depth x ROWS) * right (depth x COLUMNS): the sums stay in registers. */
static void multiply_tile(const double *restrict left, const double *restrict right,
                          double *restrict c, size_t depth, size_t n)
{
    const vector *row = (const vector *)right;
    vector low0 = {0}, low1 = {0}, low2 = {0}, low3 = {0};
    vector high0 = {0}, high1 = {0}, high2 = {0}, high3 = {0};
    for (size_t k = 0; k < depth; k++, left += ROWS, row += 2) {
        vector low = row[0], high = row[1];
        low0 += left[0] * low;
        high0 += left[0] * high;
        low1 += left[1] * low;
        high1 += left[1] * high;
        low2 += left[2] * low;
        high2 += left[2] * high;
        low3 += left[3] * low;
        high3 += left[3] * high;
    }
    add_row(c, low0, high0);
    add_row(c + n, low1, high1);
    add_row(c + 2 * n, low2, high2);
    add_row(c + 3 * n, low3, high3);
}

/* TILE x depth elements of A from (i, k) on, in strips of ROWS rows. */
static void copy_left(const double *a, double *left, size_t depth, size_t n, size_t i, size_t k)
{
    for (size_t strip = 0; strip < TILE; strip += ROWS)
        for (size_t l = 0; l < depth; l++)
            for (size_t r = 0; r < ROWS; r++) *left++ = a[(i + strip + r) * n + k + l];
}

/* depth x TILE elements of B from (k, j) on, in strips of COLUMNS columns. */
static void copy_right(const double *b, double *right, size_t depth, size_t n, size_t k, size_t j)
{
    for (size_t strip = 0; strip < TILE; strip += COLUMNS)
        for (size_t l = 0; l < depth; l++, right += COLUMNS)
            memcpy(right, b + (k + l) * n + j + strip, COLUMNS * sizeof *b);
}

/* The TILE x TILE elements of C from (i, j) on. */
static void multiply_block(const double *a, const double *b, double *c, size_t n, size_t i, size_t j)
{
    _Alignas(64) double left[TILE * DEPTH], right[DEPTH * TILE];
    for (size_t r = i; r < i + TILE; r++) memset(c + r * n + j, 0, TILE * sizeof *c);
    for (size_t k = 0; k < n; k += DEPTH) {
        size_t depth = n - k < DEPTH ? n - k : DEPTH;
        copy_left(a, left, depth, n, i, k);
        copy_right(b, right, depth, n, k, j);
        for (size_t y = 0; y < TILE; y += COLUMNS)
            for (size_t x = 0; x < TILE; x += ROWS)
                multiply_tile(left + x * depth, right + y * depth, c + (i + x) * n + j + y, depth, n);
    }
}

static void multiply(const double *a, const double *b, double *c, size_t n)
{
#pragma omp parallel for collapse(2) schedule(dynamic)
    for (size_t i = 0; i < n; i += TILE)
        for (size_t j = 0; j < n; j += TILE) multiply_block(a, b, c, n, i, j);
}

/* y = M x, or |M| x. */
static void apply(const double *m, const double *x, double *y, size_t n, bool absolute)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++) sum += (absolute ? fabs(m[i * n + j]) : m[i * n + j]) * x[j];
        y[i] = sum;
    }
}

static double residual(const double *a, const double *b, const double *c, size_t n)
{
    double *x = aligned(n), *y = aligned(n), *abx = aligned(n), *cx = aligned(n);
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) x[i] = random_at(((uint64_t)3 << 56) + i);
    apply(b, x, y, n, false);
    apply(a, y, abx, n, false);
    apply(c, x, cx, n, false);
    for (size_t i = 0; i < n; i++) {
        double difference = fabs(cx[i] - abx[i]);
        if (!(difference <= error)) error = difference; /* so that a NaN is kept */
        x[i] = fabs(x[i]);
    }
    apply(b, x, y, n, true);
    apply(a, y, abx, n, true);
    for (size_t i = 0; i < n; i++)
        if (abx[i] > size) size = abx[i];
    free(x);
    free(y);
    free(abx);
    free(cx);
    return error / (DBL_EPSILON * size);
}

int main(int argc, char **argv)
{
    int repetitions = 5, option, threads = omp_get_max_threads(), counted = 0;
    size_t n = (size_t)(1024 * cbrt((double)threads));
    opterr = 0;
    while ((option = getopt(argc, argv, ":n:r:")) != -1) {
        if (option == 'n') n = (size_t)number('n', optarg, 1, 1000000);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, MOST_REPETITIONS);
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    n = (n + TILE - 1) / TILE * TILE;
#pragma omp parallel reduction(+ : counted)
    counted++;
    if (counted != threads) fail("asked for %d threads and got %d", threads, counted);
    printf("compute with %d threads, order %zu, %d repetitions, %.1f MiB\n", threads, n, repetitions,
           3.0 * (double)(n * n) * sizeof(double) / 1048576);

    double *a = aligned(n * n), *b = aligned(n * n), *c = aligned(n * n);
    double *rates = aligned((size_t)repetitions), operations = 2.0 * (double)n * (double)n * (double)n;
    fill(a, n, 1);
    fill(b, n, 2);
    fill(c, n, 4); /* wrong values: all must be replaced */
    for (int r = -1; r < repetitions; r++) { /* -1 is the warm-up */
        double start = omp_get_wtime();
        multiply(a, b, c, n);
        double time = omp_get_wtime() - start;
        if (r >= 0) rates[r] = 1e-9 * operations / time;
    }
    struct spread s = spread_of(rates, (size_t)repetitions);
    double left = residual(a, b, c, n);
    bool ok = left < 1.0;
    printf("rate min %.2f median %.2f max %.2f GFLOP/s\n", s.min, s.median, s.max);
    printf("residual %.3e %s\n", left, ok ? "correct (below 1)" : "WRONG (must be below 1)");
    free(a);
    free(b);
    free(c);
    free(rates);
    return ok ? 0 : 1;
}
