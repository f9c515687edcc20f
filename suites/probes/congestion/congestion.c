/* congestion - what a busy network costs: latency, bandwidth and allreduce, alone and under load.
 *
 * A share of the nodes congests the network with all-to-alls that never pause; the others measure,
 * first with the congesting ones asleep (alone), then with them at work (loaded). With fewer than
 * four nodes ranks are shared out instead. Who does what is drawn by a seed. What is measured:
 *
 *   latency      one step in a random ring: send 8 bytes to the right, receive from the left
 *   bandwidth    window * size / t in that ring, both at once, in MiB/s (2^20 bytes)
 *   allreduce    a sum of one number over all measuring ranks
 *
 * avg is by the mean time, p99 by the time that 99 of 100 steps of all ranks keep to. The impact is
 * the time under load over the time alone (as GPCNeT defines it: 1 = no harm). Each repetition draws
 * a ring of its own and gives one impact; told are the median of these and an interval that holds
 * it with 95 % or more (order statistics: no shape of the noise is assumed).
 *
 * Arguments: -c congesting share, per cent (50)   -a all-to-all, bytes to each rank (64K)
 *            -s message size for bandwidth (128K)   -w window, messages (8)
 *            -i most steps a measurement (200)   -r repetitions, 6 or more (11)   -x seed (1)
 * Example:   mpirun -n 16 ./congestion -c 75
 *            latency avg alone 1.52 loaded 4.61 us impact 3.03 low 2.87 high 3.20
 *
 * Needs 4 ranks or more. Memory: 64 MiB a rank at most for the all-to-all, which is made smaller
 * where there are many ranks. Time: 11 * 6 measurements of 0.1 s or less.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double LONGEST = 0.1; /* seconds of one measurement, about */
enum { LEAST_NODES = 4, TAG_DATA = 1, TAG_FLOWS = 2, TAG_STOP = 3, MOST_BYTES = 32 << 20 };

static const char PROBE[] = "congestion";
static const char USAGE[] = "congestion [-c per cent] [-a bytes] [-s bytes] [-w window] [-i steps] "
                            "[-r repetitions] [-x seed]";

#include "probe.h"

/* ---- this probe ---------------------------------------------------------------------------- */

/* SplitMix64: small, good, and the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle(int *values, int n, uint64_t *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(next_random(seed) % (uint64_t)(i + 1)), kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
}

/* ---- who measures, who congests ------------------------------------------------------------ */

/* unit[r] = the node of rank r, counted from 0, or with few nodes r itself. The number of units. */
static int find_units(int *unit, const char **kind)
{
    MPI_Comm node;
    int leader = rank, nodes = 0;
    TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    TRY(MPI_Bcast(&leader, 1, MPI_INT, 0, node));
    TRY(MPI_Comm_free(&node));
    TRY(MPI_Allgather(&leader, 1, MPI_INT, unit, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < ranks; r++) /* a leader has the least rank of its node: it comes first */
        unit[r] = unit[r] == r ? nodes++ : unit[unit[r]];
    *kind = "nodes";
    if (nodes >= LEAST_NODES) return nodes;
    for (int r = 0; r < ranks; r++) unit[r] = r;
    *kind = "ranks";
    return ranks;
}

/* Does this rank congest? All ranks draw the same lots; two units at least are on either side. */
static int draw_lots(const int *unit, int units, int percent, uint64_t seed, int *congesting)
{
    int *lots = memory((size_t)units, sizeof *lots), mine = 0;
    int many = (int)((int64_t)units * percent / 100);
    many = many < 2 ? 2 : many > units - 2 ? units - 2 : many;
    for (int i = 0; i < units; i++) lots[i] = i;
    shuffle(lots, units, &seed);
    for (int i = 0; i < many; i++) mine |= lots[i] == unit[rank];
    free(lots);
    *congesting = many;
    return mine;
}

/* Wait for all ranks without keeping a core busy: who sleeps must not disturb who measures. */
static void meet_quietly(void)
{
    MPI_Request request;
    int done = 0;
    TRY(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    for (;;) {
        TRY(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done) return;
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

/* ---- the load ------------------------------------------------------------------------------ */

struct load { MPI_Comm group; int me, members, size, measurer; unsigned char *out, *in; };

static struct load prepare_load(MPI_Comm group, int64_t size, int measurer)
{
    struct load load = {.group = group, .measurer = measurer};
    TRY(MPI_Comm_rank(group, &load.me));
    TRY(MPI_Comm_size(group, &load.members));
    if (size > MOST_BYTES / load.members) size = MOST_BYTES / load.members;
    load.size = size < 1 ? 1 : (int)size;
    load.out = memory((size_t)load.members, (size_t)load.size);
    load.in = memory((size_t)load.members, (size_t)load.size);
    for (int to = 0; to < load.members; to++)
        fill_message(load.out + (size_t)to * (size_t)load.size, (size_t)load.size, load.me, to);
    return load;
}

static void all_to_all(struct load load)
{
    TRY(MPI_Alltoall(load.out, load.size, MPI_BYTE, load.in, load.size, MPI_BYTE, load.group));
}

/* All-to-alls until the measuring ranks have enough. The first of the group listens for that, and
 * tells them when the load has begun to flow. Returns the rate of a rank in MiB/s. */
static double congest(struct load load)
{
    int enough = 0, rounds = 0;
    double start = MPI_Wtime();
    while (!enough) {
        all_to_all(load);
        if (++rounds == 2 && load.me == 0)
            TRY(MPI_Send(NULL, 0, MPI_BYTE, load.measurer, TAG_FLOWS, MPI_COMM_WORLD));
        if (load.me == 0 && rounds > 2)
            TRY(MPI_Iprobe(load.measurer, TAG_STOP, MPI_COMM_WORLD, &enough, MPI_STATUS_IGNORE));
        TRY(MPI_Bcast(&enough, 1, MPI_INT, 0, load.group));
    }
    if (load.me == 0)
        TRY(MPI_Recv(NULL, 0, MPI_BYTE, load.measurer, TAG_STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int from = 0; from < load.members; from++)
        check_message(load.in + (size_t)from * (size_t)load.size, (size_t)load.size, from, load.me);
    double bytes = (double)rounds * (load.members - 1) * load.size;
    return bytes / 1048576 / (MPI_Wtime() - start);
}

/* ---- what is measured ---------------------------------------------------------------------- */

enum test { LATENCY, BANDWIDTH, ALLREDUCE, TESTS };

static const char *const NAME[TESTS] = {"latency", "bandwidth", "allreduce"};

struct meter {
    MPI_Comm group;
    int me, members, left, right, window;
    size_t size;
    unsigned char *out, *in;
    MPI_Request *requests;
};

static void close_ring(struct meter *m, uint64_t *seed)
{
    int *order = memory((size_t)m->members, sizeof *order), at = 0;
    for (int i = 0; i < m->members; i++) order[i] = i;
    shuffle(order, m->members, seed);
    while (order[at] != m->me) at++;
    m->left = order[(at + m->members - 1) % m->members];
    m->right = order[(at + 1) % m->members];
    free(order);
}

static void exchange(struct meter m, size_t size, int window)
{
    for (int i = 0; i < window; i++)
        TRY(MPI_Irecv(m.in + (size_t)i * size, (int)size, MPI_BYTE, m.left, TAG_DATA, m.group,
                      &m.requests[i]));
    for (int i = 0; i < window; i++)
        TRY(MPI_Isend(m.out, (int)size, MPI_BYTE, m.right, TAG_DATA, m.group,
                      &m.requests[window + i]));
    TRY(MPI_Waitall(2 * window, m.requests, MPI_STATUSES_IGNORE));
}

static void step(struct meter m, enum test test)
{
    double mine = m.me + 1.0, sum = 0, expected = 0.5 * m.members * (m.members + 1.0);
    if (test == LATENCY) exchange(m, 8, 1);
    if (test == BANDWIDTH) exchange(m, m.size, m.window);
    if (test != ALLREDUCE) return;
    TRY(MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, m.group));
    if (sum != expected) fail("wrong data: allreduce is %.17g, not %.17g", sum, expected);
}

/* A step, not timed, of which every byte is looked at. */
static void checked_step(struct meter m, enum test test)
{
    size_t size = test == LATENCY ? 8 : m.size;
    int window = test == LATENCY ? 1 : m.window;
    fill_message(m.out, size, m.me, m.right);
    memset(m.in, 0, size * (size_t)window);
    step(m, test);
    for (int i = 0; test != ALLREDUCE && i < window; i++)
        check_message(m.in + (size_t)i * size, size, m.left, m.me);
}

static int choose_steps(struct meter m, enum test test, int most)
{
    double slowest, start = MPI_Wtime();
    for (int i = 0; i < 3; i++) step(m, test);
    double time = (MPI_Wtime() - start) / 3;
    TRY(MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, m.group));
    int steps = slowest * most > LONGEST ? (int)(LONGEST / slowest) : most;
    return steps < 5 ? 5 : steps;
}

struct figures { double avg, p99; };

/* Seconds of a step over all steps of all measuring ranks; the result is on the first of them. */
static struct figures measure(struct meter m, enum test test, int most)
{
    struct figures result = {0, 0};
    checked_step(m, test);
    int n = choose_steps(m, test, most);
    size_t all = (size_t)n * (size_t)m.members;
    double *times = memory((size_t)n, sizeof *times), *gathered = NULL;
    TRY(MPI_Barrier(m.group));
    for (int i = 0; i < n; i++) {
        double start = MPI_Wtime();
        step(m, test);
        times[i] = MPI_Wtime() - start;
    }
    if (m.me == 0) gathered = memory(all, sizeof *gathered);
    TRY(MPI_Gather(times, n, MPI_DOUBLE, gathered, n, MPI_DOUBLE, 0, m.group));
    if (m.me == 0) {
        qsort(gathered, all, sizeof *gathered, ascending);
        for (size_t i = 0; i < all; i++) result.avg += gathered[i] / (double)all;
        result.p99 = gathered[(all * 99 + 99) / 100 - 1];
    }
    free(gathered);
    free(times);
    return result;
}

/* ---- the impact ---------------------------------------------------------------------------- */

/* The k for which the k-th least and k-th largest of n values enclose their distribution's median
 * with 95 % or more: it fails only if fewer than k values fall on one side of the median, as often
 * as fewer than k heads in n tosses of a coin. */
static int rank_of_bound(int n)
{
    double chance = 1, below = 0; /* of j heads; of j or fewer */
    int k = 0;
    for (int i = 0; i < n; i++) chance /= 2;
    for (int j = 0; j < n / 2; j++) {
        below += chance;
        if (below > 0.025) break;
        k = j + 1;
        chance *= (double)(n - j) / (j + 1);
    }
    return k;
}

/* seconds[repetition] of one statistic, alone and loaded, as the line that is read from the output. */
static void print_impact(enum test test, const char *statistic, double mib, double *alone,
                         double *loaded, int n)
{
    double *impact = memory((size_t)n, sizeof *impact);
    for (int i = 0; i < n; i++) impact[i] = loaded[i] / alone[i];
    double middle = spread_of(impact, (size_t)n).median;
    int k = rank_of_bound(n);
    double a = spread_of(alone, (size_t)n).median, b = spread_of(loaded, (size_t)n).median;
    printf("%s %s alone %.6g loaded %.6g %s impact %.4g low %.4g high %.4g\n", NAME[test], statistic,
           test == BANDWIDTH ? mib / a : 1e6 * a, test == BANDWIDTH ? mib / b : 1e6 * b,
           test == BANDWIDTH ? "MiB/s" : "us", middle, impact[k - 1], impact[n - k]);
    free(impact);
}

struct results { double *avg, *p99; }; /* [repetition], in seconds */

static void keep(struct results results, int repetition, struct figures figures)
{
    results.avg[repetition] = figures.avg;
    results.p99[repetition] = figures.p99;
}

static void measure_all(struct meter m, int most, int repetition, struct results *results)
{
    for (enum test test = LATENCY; test < TESTS; test++)
        keep(results[test], repetition, measure(m, test, most));
}

static void start_load(struct meter m, int congestor)
{
    meet_quietly();
    if (m.me == 0)
        TRY(MPI_Recv(NULL, 0, MPI_BYTE, congestor, TAG_FLOWS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TRY(MPI_Barrier(m.group));
}

static void stop_load(struct meter m, int congestor)
{
    TRY(MPI_Barrier(m.group));
    if (m.me == 0) TRY(MPI_Send(NULL, 0, MPI_BYTE, congestor, TAG_STOP, MPI_COMM_WORLD));
}

static void be_measurer(struct meter m, int most, int repetitions, uint64_t seed, int congestor)
{
    struct results alone[TESTS], loaded[TESTS];
    size_t n = (size_t)repetitions;
    for (int t = 0; t < TESTS; t++) {
        alone[t] = (struct results){memory(n, sizeof(double)), memory(n, sizeof(double))};
        loaded[t] = (struct results){memory(n, sizeof(double)), memory(n, sizeof(double))};
    }
    for (int r = 0; r < repetitions; r++) {
        close_ring(&m, &seed);
        measure_all(m, most, r, alone);
        start_load(m, congestor);
        measure_all(m, most, r, loaded);
        stop_load(m, congestor);
    }
    double mib = (double)m.size * m.window / 1048576;
    for (enum test t = LATENCY; t < TESTS; t++) {
        if (m.me == 0) {
            print_impact(t, "avg", mib, alone[t].avg, loaded[t].avg, repetitions);
            print_impact(t, "p99", mib, alone[t].p99, loaded[t].p99, repetitions);
        }
        free(alone[t].avg), free(alone[t].p99), free(loaded[t].avg), free(loaded[t].p99);
    }
    if (m.me == 0) fflush(stdout);
}

static void be_congestor(struct load load, int repetitions)
{
    double *rates = memory((size_t)repetitions, sizeof *rates);
    for (int r = 0; r < repetitions; r++) {
        meet_quietly();
        rates[r] = congest(load);
    }
    double rate = spread_of(rates, (size_t)repetitions).median;
    if (load.me == 0)
        TRY(MPI_Send(&rate, 1, MPI_DOUBLE, load.measurer, TAG_FLOWS, MPI_COMM_WORLD));
    free(rates);
}

int main(int argc, char **argv)
{
    int percent = 50, most = 200, repetitions = 11, congesting, option;
    int64_t load_size = 1 << 16;
    struct meter m = {.window = 8, .size = 1 << 17};
    uint64_t seed = 1;
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":c:a:s:w:i:r:x:")) != -1) {
        if (option == 'c') percent = (int)number('c', optarg, 1, 99);
        else if (option == 'a') load_size = number('a', optarg, 1, MOST_BYTES);
        else if (option == 's') m.size = (size_t)number('s', optarg, 8, 1 << 30);
        else if (option == 'w') m.window = (int)number('w', optarg, 1, 10000);
        else if (option == 'i') most = (int)number('i', optarg, 5, 1000000);
        else if (option == 'r') repetitions = (int)number('r', optarg, 6, 1000);
        else if (option == 'x') seed = (uint64_t)number('x', optarg, 0, INT64_MAX);
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (ranks < 4) usage("needs at least 4 ranks, got %d", ranks);

    const char *kind;
    int *unit = memory((size_t)ranks, sizeof *unit), *loads = memory((size_t)ranks, sizeof *loads);
    int units = find_units(unit, &kind);
    int mine = draw_lots(unit, units, percent, seed, &congesting);
    MPI_Comm group;
    TRY(MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &group));
    TRY(MPI_Allgather(&mine, 1, MPI_INT, loads, 1, MPI_INT, MPI_COMM_WORLD));
    int measurer = 0, congestor = 0; /* the first of either side */
    while (loads[measurer]) measurer++;
    while (!loads[congestor]) congestor++;
    if (rank == measurer) {
        printf("congestion of %d ranks: %d %s measure, %d congest, %d repetitions, seed %" PRIu64 "\n",
               ranks, units - congesting, kind, congesting, repetitions, seed);
        fflush(stdout);
    }
    if (mine) {
        struct load load = prepare_load(group, load_size, measurer);
        be_congestor(load, repetitions);
        free(load.out);
        free(load.in);
    } else {
        m.group = group;
        TRY(MPI_Comm_rank(group, &m.me));
        TRY(MPI_Comm_size(group, &m.members));
        m.out = memory(m.size, 1);
        m.in = memory(m.size, (size_t)m.window);
        m.requests = memory(2 * (size_t)m.window, sizeof(MPI_Request));
        be_measurer(m, most, repetitions, seed, congestor);
        free(m.out);
        free(m.in);
        free(m.requests);
    }
    if (rank == measurer) {
        double rate;
        TRY(MPI_Recv(&rate, 1, MPI_DOUBLE, congestor, TAG_FLOWS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        printf("all-to-all of the others %.6g MiB/s a rank\n", rate);
        printf("congestion finished, all messages correct\n");
    }
    free(unit);
    free(loads);
    TRY(MPI_Comm_free(&group));
    MPI_Finalize();
    return 0;
}
