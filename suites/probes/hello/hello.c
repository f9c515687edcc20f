/* hello - where does every rank and every thread run?
 *
 * Each OpenMP thread of each MPI rank computes for 0.1 s and reports the node, the CPU on which it
 * was longest, all CPUs of that core, the NUMA domain, and the CPUs it may use (its affinity mask),
 * shown compactly: 0-3,8 is CPUs 0, 1, 2, 3 and 8. "CPU" is the number Linux gives to a hardware
 * thread. Built without OpenMP it has one thread, as a program built so would have.
 *
 *   init      time spent in MPI_Init, in s: min, median, max over the ranks
 *   cpus      different CPUs on which threads were found, all nodes together
 *   crowded   threads found on a CPU on which another thread had been counted already
 *   bound     threads that may use one CPU only
 *
 * Arguments: none. The number of threads is OMP_NUM_THREADS.
 * Example:   OMP_NUM_THREADS=2 mpirun -n 4 ./hello
 *            rank 0 of 4 thread 0 of 2 node n001 cpu 0 core 0,4 numa 0 mask 0-1
 *
 * Scales: rank 0 takes one rank's lines at a time, in order.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
#endif

enum { MOST_CPUS = 8192, MASK_TEXT = 256, CORE_TEXT = 64, LINE = 1024, TAG_TEXT = 1 };

#define SPIN 0.1 /* s: time for Linux to spread threads over the CPUs that they may use */

static int rank, ranks;

/* ---- common to the probes ------------------------------------------------------------------ */

static void fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "ERROR: hello: rank %d: ", rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Every MPI call goes through TRY, so that a failure names the call and the place. */
#define TRY(call) check_mpi((call), #call, __LINE__)

static void check_mpi(int code, const char *call, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &length);
    fail("line %d: %s: %s", line, call, text);
}

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p) fail("no memory for %zu x %zu bytes", count, size);
    return p;
}

struct spread { double min, median, max; };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(double *values, size_t n) /* sorts the values */
{
    qsort(values, n, sizeof *values, ascending);
    return (struct spread){values[0], 0.5 * (values[(n - 1) / 2] + values[n / 2]), values[n - 1]};
}

/* ---- this probe ---------------------------------------------------------------------------- */

struct place { int cpu, numa, allowed; char core[CORE_TEXT], mask[MASK_TEXT]; };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Write a mask as "0-3,8"; a text that would not fit ends with "...". */
static void describe_mask(const cpu_set_t *set, size_t size, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int first = 0; first < MOST_CPUS; first++) {
        if (!CPU_ISSET_S(first, size, set)) continue;
        int last = first;
        while (last + 1 < MOST_CPUS && CPU_ISSET_S(last + 1, size, set)) last++;
        if (used > MASK_TEXT - 32) {
            strcpy(text + used, ",...");
            return;
        }
        used += (size_t)snprintf(text + used, MASK_TEXT - used, last > first ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", first, last);
        first = last;
    }
}

/* Compute for a while; return the CPU on which this thread was seen most often, and its domain. */
static void settle(int *cpu, int *numa)
{
    int *seen = memory(MOST_CPUS, sizeof *seen), most = 0;
    for (double end = seconds() + SPIN; seconds() < end;) {
        unsigned now, domain;
        if (syscall(SYS_getcpu, &now, &domain, NULL)) fail("getcpu: %s", strerror(errno));
        if (now >= MOST_CPUS) fail("CPU %u, but this program counts up to %d", now, MOST_CPUS - 1);
        if (++seen[now] > most) {
            most = seen[now];
            *cpu = (int)now;
            *numa = (int)domain;
        }
    }
    free(seen);
}

/* All CPUs of a CPU's core, as the kernel writes them: "0,4"; the CPU itself where it does not. */
static void describe_core(int cpu, char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%63[0-9,-]", text) != 1) snprintf(text, CORE_TEXT, "%d", cpu);
    if (file) fclose(file);
}

static struct place find_place(void)
{
    struct place here = {0};
    size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
    cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
    if (!set) fail("no memory for a CPU mask");
    CPU_ZERO_S(size, set);
    if (sched_getaffinity(0, size, set)) fail("sched_getaffinity: %s", strerror(errno));
    settle(&here.cpu, &here.numa);
    describe_core(here.cpu, here.core);
    describe_mask(set, size, here.mask);
    here.allowed = CPU_COUNT_S(size, set);
    CPU_FREE(set);
    return here;
}

/* The places of the threads that there are; their number may be less than what was asked for. */
static struct place *find_places(int *threads)
{
    struct place *places = memory((size_t)*threads, sizeof *places);
    int counted = 0;
    TRY(MPI_Barrier(MPI_COMM_WORLD)); /* all ranks compute at the same time */
#pragma omp parallel num_threads(*threads) reduction(+ : counted)
    {
        places[omp_get_thread_num()] = find_place();
        counted++;
#pragma omp barrier /* all threads alive at once: none is reported twice in one place */
    }
    *threads = counted;
    return places;
}

/* Rank 0 prints its own lines, then those of rank 1, 2, ... */
static void print_places(const struct place *places, int threads)
{
    char node[256];
    size_t room = (size_t)threads * LINE, used = 0;
    char *text = memory(room, 1);
    if (gethostname(node, sizeof node)) fail("gethostname: %s", strerror(errno));
    node[sizeof node - 1] = '\0';
    for (int t = 0; t < threads; t++)
        used += (size_t)snprintf(text + used, room - used,
                                 "rank %d of %d thread %d of %d node %s cpu %d core %s numa %d "
                                 "mask %s\n",
                                 rank, ranks, t, threads, node, places[t].cpu, places[t].core,
                                 places[t].numa, places[t].mask);
    if (rank != 0) {
        TRY(MPI_Ssend(text, (int)used, MPI_CHAR, 0, TAG_TEXT, MPI_COMM_WORLD));
    } else {
        fwrite(text, 1, used, stdout);
        for (int from = 1; from < ranks; from++) {
            MPI_Status status;
            int length;
            TRY(MPI_Probe(from, TAG_TEXT, MPI_COMM_WORLD, &status));
            TRY(MPI_Get_count(&status, MPI_CHAR, &length));
            char *theirs = memory((size_t)length, 1);
            TRY(MPI_Recv(theirs, length, MPI_CHAR, from, TAG_TEXT, MPI_COMM_WORLD, &status));
            fwrite(theirs, 1, (size_t)length, stdout);
            free(theirs);
        }
    }
    free(text);
}

/* Count nodes, CPUs in use and threads that share a CPU: per node first, then over the nodes. */
static void print_totals(const struct place *places, int threads)
{
    enum { NODES, THREADS, CPUS, CROWDED, BOUND, TOTALS };
    long mine[TOTALS] = {0}, all[TOTALS];
    int local;
    MPI_Comm node;
    int *found = memory(MOST_CPUS, sizeof *found), *on_node = memory(MOST_CPUS, sizeof *on_node);
    for (int t = 0; t < threads; t++) {
        if (places[t].cpu < MOST_CPUS) found[places[t].cpu]++;
        mine[BOUND] += places[t].allowed == 1;
    }
    TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    TRY(MPI_Comm_rank(node, &local));
    TRY(MPI_Reduce(found, on_node, MOST_CPUS, MPI_INT, MPI_SUM, 0, node));
    mine[THREADS] = threads;
    if (local == 0) {
        mine[NODES] = 1;
        for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
            mine[CPUS] += on_node[cpu] > 0;
            mine[CROWDED] += on_node[cpu] > 1 ? on_node[cpu] - 1 : 0;
        }
    }
    TRY(MPI_Reduce(mine, all, TOTALS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    if (rank == 0)
        printf("total ranks %d nodes %ld threads %ld cpus %ld crowded %ld bound %ld\n", ranks,
               all[NODES], all[THREADS], all[CPUS], all[CROWDED], all[BOUND]);
    TRY(MPI_Comm_free(&node));
    free(found);
    free(on_node);
}

int main(int argc, char **argv)
{
    int level;
    double start = seconds();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    double init = seconds() - start;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TRY(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    TRY(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (argc > 1) {
        if (rank == 0) fprintf(stderr, "hello: takes no arguments, got '%s'\nusage: hello\n", argv[1]);
        MPI_Finalize();
        return 2;
    }

    int threads = omp_get_max_threads();
    struct place *places = find_places(&threads);
    print_places(places, threads);
    print_totals(places, threads);
    free(places);

    double *inits = memory((size_t)ranks, sizeof *inits);
    TRY(MPI_Gather(&init, 1, MPI_DOUBLE, inits, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        struct spread s = spread_of(inits, (size_t)ranks);
        printf("init min %.4f median %.4f max %.4f s\n", s.min, s.median, s.max);
        printf("hello finished\n");
    }
    free(inits);
    MPI_Finalize();
    return 0;
}
