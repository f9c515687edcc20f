/* surrogate - stands in for a climate model: it computes, exchanges, keeps files open and writes.
 *
 * Each rank opens `f` files in the working directory and holds them open to the end. Then it
 * takes steps, until the time is up on rank 0: it computes for a moment, sums a value over all ranks, and appends
 * `w` KiB to its files in turn. At the end it reads every byte back, compares it, and removes its files.
 *
 * Arguments: -t elapsed time in seconds (10)   -x divided by this (1)
 *            -f files a rank (16)   -w KiB that a rank writes in a step (64)   -n steps at most (1000)
 * Example:   mpirun -n 4 ./surrogate -t 4148 -x 600
 *            steps 138
 *            elapsed 6.914 s
 *            end of run
 *
 * Nothing is left behind unless it fails.
 */
#define _GNU_SOURCE 1
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILES = 4096, NAME = 64, SIDE = 64 };

static int rank, size;

static void fail(const char *format, ...) {
  va_list words;
  va_start(words, format);
  fprintf(stderr, "surrogate: rank %d: ", rank);
  vfprintf(stderr, format, words);
  fputc('\n', stderr);
  va_end(words);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double number(const char *text, double least, double most) {
  char *end = NULL;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most))
    fail("%s is not a number from %g to %g", text, least, most);
  return value;
}

/* A step's work: a product of small matrices, whose sum is returned. */
static double compute(double seconds) {
  static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
  double until = MPI_Wtime() + seconds, sum = 0;
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) {
      a[i][j] = i == j;
      b[i][j] = 1.0 / (1 + i + j);
    }
  do {
    for (int i = 0; i < SIDE; i++)
      for (int j = 0; j < SIDE; j++) {
        double dot = 0;
        for (int k = 0; k < SIDE; k++) dot += a[i][k] * b[k][j];
        c[i][j] = dot;
      }
    sum = c[0][0];
  } while (MPI_Wtime() < until);
  return sum;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double start = MPI_Wtime(), seconds = 10, faster = 1;
  int files = 16, kib = 64, most = 1000;
  for (int option; (option = getopt(argc, argv, "t:x:f:w:n:")) != -1;) {
    if (option == 't') seconds = number(optarg, 0, 1e6);
    else if (option == 'x') faster = number(optarg, 1e-3, 1e6);
    else if (option == 'f') files = (int)number(optarg, 1, MAX_FILES);
    else if (option == 'w') kib = (int)number(optarg, 0, 1 << 20);
    else if (option == 'n') most = (int)number(optarg, 1, 1e9);
    else fail("usage: surrogate [-t seconds] [-x faster] [-f files] [-w KiB] [-n steps]");
  }
  seconds /= faster;

  static FILE *open_files[MAX_FILES];
  char name[NAME];
  for (int i = 0; i < files; i++) {
    snprintf(name, sizeof name, "surrogate.%d.%d", rank, i);
    if ((open_files[i] = fopen(name, "w+b")) == NULL) fail("%s cannot be opened", name);
  }
  size_t bytes = (size_t)kib * 1024;
  unsigned char *block = malloc(bytes + 1), *back = malloc(bytes + 1);
  if (block == NULL || back == NULL) fail("no memory for %d KiB", kib);

  int steps = 0, more = 1;
  while (more && steps < most) {
    double mine = compute(seconds / most), sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (sum < size * 0.999 || sum > size * 1.001) fail("the sum of step %d is %g", steps, sum);
    memset(block, steps % 251, bytes);
    if (fwrite(block, 1, bytes, open_files[steps % files]) != bytes) fail("step %d cannot be written", steps);
    steps++;
    more = MPI_Wtime() - start < seconds;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }

  for (int i = 0; i < files; i++) {
    rewind(open_files[i]);
    for (int step = i; step < steps; step += files) {
      memset(block, step % 251, bytes);
      if (fread(back, 1, bytes, open_files[i]) != bytes || memcmp(block, back, bytes) != 0)
        fail("step %d was not read back as it was written", step);
    }
    fclose(open_files[i]);
    snprintf(name, sizeof name, "surrogate.%d.%d", rank, i);
    unlink(name);
  }
  free(block);
  free(back);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("steps %d\nelapsed %.3f s\nend of run\n", steps, MPI_Wtime() - start);
  MPI_Finalize();
  return 0;
}
