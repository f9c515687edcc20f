/* stream - sustained memory bandwidth of one node, with OpenMP.
 *
 * Four loops over arrays of N doubles, far larger than the caches:
 *
 *   Copy    c[i] = a[i]              16 N bytes
 *   Scale   b[i] = q * c[i]          16 N bytes
 *   Add     c[i] = a[i] + b[i]       24 N bytes
 *   Triad   a[i] = b[i] + q * c[i]   24 N bytes
 *
 * rate = bytes / time, in MB/s (1 MB = 10^6 bytes). As in McCalpin's STREAM, whose layout of output
 * is kept, bytes that the hardware moves beyond these (write-allocate) are not counted, the first
 * repetition is a warm-up, and the table shows the best rate. Lines below the table give min,
 * median and max over the repetitions.
 *
 * First touch decides on which NUMA domain a page lies:
 *   -DTOUCH_all   every thread touches first the part that it will use (pages near the threads)
 *   -DTOUCH_one   one thread touches all (all pages in one domain: what a careless code gets)
 *
 * Huge pages are asked for (madvise), so that address translation is not what is measured.
 *
 * Arguments: -n elements of each array; default: 4 times the last-level caches that the threads
 *               can reach (at least 64 MiB an array), but all three within half of the free memory
 *            -r repetitions, one more is the warm-up; default 10
 * Example:   cc -O2 -fopenmp -DTOUCH_all -o stream -I../common stream.c && OMP_NUM_THREADS=8 ./stream -r 20
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(TOUCH_all) == defined(TOUCH_one)
#error "compile with either -DTOUCH_all or -DTOUCH_one"
#endif

enum { MOST_CPUS = 8192, KERNELS = 4, MOST_REPETITIONS = 100000 };
enum { COPY, SCALE, ADD, TRIAD };

static const char *const KERNEL[KERNELS] = {"Copy:", "Scale:", "Add:", "Triad:"};
static const char *const KERNEL_LOWER[KERNELS] = {"copy", "scale", "add", "triad"};
static const int ARRAYS_MOVED[KERNELS] = {2, 2, 3, 3};
static const double Q = 3.0;
static const char RULE[] = "-------------------------------------------------------------\n";

static const char PROBE[] = "stream";
static const char USAGE[] = "stream [-n elements] [-r repetitions]";

#include "probe.h"

/* ---- how large must the arrays be? --------------------------------------------------------- */

static bool read_text(const char *path, char *text, int size)
{
    FILE *file = fopen(path, "r");
    bool ok = file && fgets(text, size, file);
    if (file) fclose(file);
    return ok;
}

/* Bytes of the last-level cache of a CPU, and the first CPU of those that share it. */
static int64_t cache_of(int cpu, int *first_sharer)
{
    char path[128], text[256];
    for (int index = 9; index >= 0; index--) { /* the highest index is the last level */
        int64_t size;
        char unit = ' ';
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, index);
        if (!read_text(path, text, sizeof text)) continue;
        if (sscanf(text, "%" SCNd64 "%c", &size, &unit) < 1) continue;
        size *= unit == 'K' ? 1024 : unit == 'M' ? 1048576 : 1;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list",
                 cpu, index);
        *first_sharer = cpu;
        if (read_text(path, text, sizeof text)) *first_sharer = atoi(text);
        return size;
    }
    return 0;
}

/* All last-level caches that the threads can reach, each counted once. */
static int64_t reachable_cache(void)
{
    static bool seen[MOST_CPUS];
    size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
    cpu_set_t *all = CPU_ALLOC(MOST_CPUS);
    if (!all) fail("no memory for a CPU mask");
    CPU_ZERO_S(size, all);
#pragma omp parallel /* each thread has its own mask when OMP_PROC_BIND is set */
    {
        cpu_set_t *mine = CPU_ALLOC(MOST_CPUS);
        if (mine) {
            CPU_ZERO_S(size, mine);
            if (sched_getaffinity(0, size, mine) == 0) {
#pragma omp critical
                CPU_OR_S(size, all, all, mine);
            }
            CPU_FREE(mine);
        }
    }
    int64_t total = 0;
    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        int first = cpu;
        if (!CPU_ISSET_S(cpu, size, all)) continue;
        int64_t bytes = cache_of(cpu, &first);
        if (first < 0 || first >= MOST_CPUS || seen[first]) continue;
        seen[first] = true;
        total += bytes;
    }
    CPU_FREE(all);
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (total <= 0) total = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return total > 0 ? total : 0;
}

static int64_t free_memory(void)
{
    char line[256];
    int64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNd64, &kib) == 1) break;
    if (file) fclose(file);
    return kib > 0 ? kib * 1024 : (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static int64_t choose_elements(int64_t cache)
{
    int64_t bytes = 4 * cache, least = 64 << 20, most = free_memory() / 6;
    if (bytes < least) bytes = least;
    if (bytes > most) bytes = most;
    return bytes / (int64_t)sizeof(double) / 1024 * 1024;
}

/* ---- the measurement ----------------------------------------------------------------------- */

static double *a, *b, *c;

/* Pages that nobody has touched yet; malloc could hand out pages used before. */
static double *untouched(int64_t n)
{
    void *p = mmap(NULL, (size_t)n * sizeof(double), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) fail("mmap of %" PRId64 " doubles: %s", n, strerror(errno));
#ifdef MADV_HUGEPAGE
    madvise(p, (size_t)n * sizeof(double), MADV_HUGEPAGE); /* a wish: no matter if refused */
#endif
    return p;
}

static void first_touch(int64_t n)
{
#ifdef TOUCH_all
#pragma omp parallel for schedule(static)
#endif
    for (int64_t i = 0; i < n; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
}

static void run_kernel(int kernel, int64_t n)
{
    double *restrict x = a, *restrict y = b, *restrict z = c;
    if (kernel == COPY) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; i++) z[i] = x[i];
    } else if (kernel == SCALE) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; i++) y[i] = Q * z[i];
    } else if (kernel == ADD) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];
    } else {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; i++) x[i] = y[i] + Q * z[i];
    }
}

/* Every element of an array must be what the same steps give for one number. */
static bool array_is(const char *name, const double *array, double expected, int64_t n)
{
    double sum = 0;
    int64_t wrong = 0;
#pragma omp parallel for reduction(+ : sum, wrong)
    for (int64_t i = 0; i < n; i++) {
        double error = fabs(array[i] - expected);
        sum += error;
        wrong += !(error <= 1e-13 * fabs(expected));
    }
    if (wrong == 0 && sum / (double)n <= 1e-13 * fabs(expected)) return true;
    printf("Failed Validation on array %s[]: %" PRId64 " errors, expected %.15e, avg error %e\n",
           name, wrong, expected, sum / (double)n);
    return false;
}

static bool validate(int64_t n, int rounds)
{
    double x = 1.0, y = 2.0, z = 0.0;
    for (int r = 0; r < rounds; r++) {
        z = x;
        y = Q * z;
        z = x + y;
        x = y + Q * z;
    }
    bool ok = array_is("a", a, x, n);
    ok = array_is("b", b, y, n) && ok;
    return array_is("c", c, z, n) && ok;
}

static void print_head(int64_t n, int repetitions, int threads, int64_t cache)
{
    double mib = (double)n * sizeof(double) / 1048576;
    printf("%sSTREAM layout of version $Revision: 5.10 $ (Seatrial probe)\n%s", RULE, RULE);
    printf("This system uses %zu bytes per array element.\n%s", sizeof(double), RULE);
    printf("Array size = %" PRId64 " (elements), Offset = 0 (elements)\n", n);
    printf("Memory per array = %.1f MiB (= %.1f GiB).\n", mib, mib / 1024);
    printf("Total memory required = %.1f MiB (= %.1f GiB).\n", 3 * mib, 3 * mib / 1024);
    printf("Last-level caches in reach = %.1f MiB, array / cache = %.1f\n", (double)cache / 1048576,
           cache ? mib * 1048576 / (double)cache : 0.0);
    if (mib * 1048576 < 4.0 * (double)cache)
        printf("NOTE: arrays smaller than 4 times the caches; rates may be those of a cache\n");
#ifdef TOUCH_all
    printf("First touch by all threads\n");
#else
    printf("First touch by one thread\n");
#endif
    printf("Each kernel will be executed %d times, after one warm-up.\n", repetitions);
    printf("%sNumber of Threads requested = %d\n", RULE, threads);
    int counted = 0;
#pragma omp parallel reduction(+ : counted)
    counted++;
    printf("Number of Threads counted = %d\n%s", counted, RULE);
    if (counted != threads) fail("asked for %d threads and got %d", threads, counted);
}

int main(int argc, char **argv)
{
    int64_t n = 0;
    int repetitions = 10, option;
    opterr = 0;
    while ((option = getopt(argc, argv, ":n:r:")) != -1) {
        if (option == 'n') n = number('n', optarg, 1000, (int64_t)1 << 40);
        else if (option == 'r') repetitions = (int)number('r', optarg, 1, MOST_REPETITIONS);
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);

    int threads = omp_get_max_threads();
    int64_t cache = reachable_cache();
    if (n == 0) n = choose_elements(cache);
    print_head(n, repetitions, threads, cache);

    a = untouched(n);
    b = untouched(n);
    c = untouched(n);
    first_touch(n);

    double *times[KERNELS];
    for (int k = 0; k < KERNELS; k++)
        if (!(times[k] = calloc((size_t)repetitions, sizeof(double)))) fail("no memory");
    for (int r = -1; r < repetitions; r++) /* -1 is the warm-up */
        for (int k = 0; k < KERNELS; k++) {
            double start = omp_get_wtime();
            run_kernel(k, n);
            double time = omp_get_wtime() - start;
            if (r >= 0) times[k][r] = time;
        }

    struct spread s[KERNELS];
    printf("Function    Best Rate MB/s  Avg time     Min time     Max time\n");
    for (int k = 0; k < KERNELS; k++) {
        double sum = 0;
        for (int r = 0; r < repetitions; r++) sum += times[k][r];
        s[k] = spread_of(times[k], (size_t)repetitions);
        printf("%-11s %12.1f  %11.6f  %11.6f  %11.6f\n",
               KERNEL[k],
               1e-6 * ARRAYS_MOVED[k] * sizeof(double) * (double)n / s[k].min, sum / repetitions,
               s[k].min, s[k].max);
    }
    printf("%s", RULE);
    for (int k = 0; k < KERNELS; k++) {
        double megabytes = 1e-6 * ARRAYS_MOVED[k] * sizeof(double) * (double)n;
        printf("%s min %.1f median %.1f max %.1f MB/s\n", KERNEL_LOWER[k], megabytes / s[k].max,
               megabytes / s[k].median, megabytes / s[k].min);
    }
    printf("%s", RULE);
    bool ok = validate(n, repetitions + 1);
    if (ok)
        printf("Solution Validates: avg error less than 1.000000e-13 on all three arrays\n");
    printf("%s", RULE);
    return ok ? 0 : 1;
}
