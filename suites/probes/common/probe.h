/* What the probes have in common; a probe with MPI includes mpi.h before.
 *
 *   static const char PROBE[] = "pairs", USAGE[] = "pairs [-s bytes] [-o file]";
 *   #include "probe.h"
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef MPI_VERSION
static int rank, ranks;
#else
static const int rank = 0;
#endif

static void fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "ERROR: %s: ", PROBE);
#ifdef MPI_VERSION
    fprintf(stderr, "rank %d: ", rank);
#endif
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
#ifdef MPI_VERSION
    MPI_Abort(MPI_COMM_WORLD, 1);
#endif
    exit(1);
}

static void usage(const char *format, ...)
{
    if (rank == 0) {
        va_list arguments;
        fprintf(stderr, "%s: ", PROBE);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fprintf(stderr, "\nusage: %s\n", USAGE);
    }
#ifdef MPI_VERSION
    MPI_Finalize();
#endif
    exit(2);
}

/* The value of option -x: a whole number, with K, M or G for 2^10, 2^20 or 2^30. */
static int64_t number(int option, const char *text, int64_t low, int64_t high)
{
    char *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == text || errno || end[shift ? 1 : 0] != '\0')
        usage("-%c: '%s' is not a whole number (with K, M or G after it)", option, text);
    if (value < 0 || value > high >> shift || value << shift < low)
        usage("-%c: %s is not between %" PRId64 " and %" PRId64, option, text, low, high);
    return value << shift;
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

#ifdef MPI_VERSION

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

static void start_mpi(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TRY(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    TRY(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    opterr = 0;
}

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p) fail("no memory for %zu x %zu bytes", count, size);
    return p;
}

/* What a message holds depends on who sends it, to whom, and on the place of each byte. */
static inline unsigned char byte_at(int from, int to, size_t place)
{
    return (unsigned char)((unsigned)from * 7u + (unsigned)to * 13u + (unsigned)place +
                           (unsigned)(place >> 8) * 3u + 1u);
}

static inline void fill_message(unsigned char *message, size_t size, int from, int to)
{
    for (size_t i = 0; i < size; i++) message[i] = byte_at(from, to, i);
}

static inline void check_message(const unsigned char *message, size_t size, int from, int to)
{
    for (size_t i = 0; i < size; i++)
        if (message[i] != byte_at(from, to, i))
            fail("wrong data: message of %zu bytes from rank %d: byte %zu is 0x%02x, not 0x%02x",
                 size, from, i, message[i], byte_at(from, to, i));
}

#endif
