/* pingpong - latency and bandwidth between two ranks, pair after pair.
 *
 * One pair at a time, with all other ranks asleep: the first sends a message, the second sends one
 * of the same size back.
 *
 *   latency   = t / 2            in us, of short messages
 *   bandwidth = 2 * size / t     in MiB/s (2^20 bytes), of long messages
 *
 * with t the time of a round trip, averaged over the trips of a repetition. min, median and max are
 * over all repetitions of all pairs; they are also given apart for pairs on one node ("core pairs")
 * and on two nodes ("node pairs"), and pair by pair: the median of a pair, and from 6 repetitions on
 * the interval that holds it with 95 % or more. All pairs are measured while there are at most
 * `pairs` of them; else the pairs of neighbours in rank order, and random pairs up to that number.
 * Each repetition is a round over all pairs, in another random order: what disturbs the machine for
 * a while is in no pair, and no level of the network, more than in others.
 *
 * Ranks that may use several CPUs and have one each are pinned, whole cores first, so that a rank is
 * a core and "cpu" in the table is its number; -u leaves them as they are. More ranks than CPUs are
 * not pinned.
 *
 * Arguments: -r repetitions (11)    -l short message, bytes (8)    -s long message, bytes (1M)
 *            -i most round trips a repetition (500); fewer if they would take longer than 5 ms
 *            -p most pairs (4096)   -x seed of pairs and their order (1)   -u do not pin
 * Example:   mpirun -n 4 ./pingpong
 *            pair 0 1 nodes n001 n001 cpus 0 1 latency 0.42 us (0.41..0.44) bandwidth 9211.0 MiB/s
 *            (9190.2..9240.1)   [on the same line]
 *            latency min 0.41 median 0.44 max 0.61 us
 *
 * Needs 2 ranks or more. Rank 0 says whose turn it is. Time: about 100 ms a pair.
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CPUS = 8192, NAME = 64 };
enum { TAG_TURN = 1, TAG_TRIPS, TAG_DATA, TAG_RESULT };

static const char PROBE[] = "pingpong";
static const char USAGE[] =
    "pingpong [-r repetitions] [-l bytes] [-s bytes] [-i trips] [-p pairs] [-x seed] [-u]";
static const double LONGEST = 0.005; /* s a repetition */

#include "probe.h"

/* ---- where the ranks are -------------------------------------------------------------------- */

struct place { int node, cpu; char name[NAME]; }; /* node: the lowest rank on it */

/* The first of the hardware threads of a CPU's core; the CPU itself where that is not known. */
static int first_sibling(int cpu)
{
    char path[128];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &first) != 1) first = cpu;
    if (file) fclose(file);
    return first;
}

/* The n-th CPU of a mask, counting first one CPU of each core, then the others. */
static int nth_cpu(const cpu_set_t *mask, size_t size, int n)
{
    for (int pass = 0; pass < 2; pass++)
        for (int cpu = 0; cpu < MOST_CPUS; cpu++)
            if (CPU_ISSET_S(cpu, size, mask) && (first_sibling(cpu) != cpu) == pass && n-- == 0)
                return cpu;
    return -1;
}

/* Give each of the ranks of a node that have the same mask a CPU of its own, if there are enough. */
static bool pin(MPI_Comm node, int local, int locals)
{
    size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
    char *masks = memory((size_t)locals, size), *mine = memory(1, size);
    int sharers = 0, before = 0;
    if (sched_getaffinity(0, size, (cpu_set_t *)mine)) fail("sched_getaffinity: %s", strerror(errno));
    TRY(MPI_Allgather(mine, (int)size, MPI_CHAR, masks, (int)size, MPI_CHAR, node));
    for (int i = 0; i < locals; i++) {
        bool same = memcmp(mine, masks + (size_t)i * size, size) == 0;
        sharers += same;
        before += same && i < local;
    }
    int cpu = -1;
    if (sharers <= CPU_COUNT_S(size, (cpu_set_t *)mine)) cpu = nth_cpu((cpu_set_t *)mine, size, before);
    if (cpu >= 0) {
        memset(mine, 0, size);
        CPU_SET_S(cpu, size, (cpu_set_t *)mine);
        if (sched_setaffinity(0, size, (cpu_set_t *)mine)) cpu = -1; /* not allowed: stay unpinned */
    }
    free(masks);
    free(mine);
    return cpu >= 0;
}

/* Pin if wanted, and tell rank 0 where everybody is. */
static struct place *find_places(bool pinning)
{
    struct place here = {0}, *places = NULL;
    MPI_Comm node;
    int local, locals, pinned = 0, all_pinned;
    TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    TRY(MPI_Comm_rank(node, &local));
    TRY(MPI_Comm_size(node, &locals));
    if (pinning) pinned = pin(node, local, locals);
    here.node = rank;
    TRY(MPI_Bcast(&here.node, 1, MPI_INT, 0, node));
    here.cpu = sched_getcpu();
    if (gethostname(here.name, NAME - 1)) fail("gethostname: %s", strerror(errno));
    if (rank == 0) places = memory((size_t)ranks, sizeof *places);
    TRY(MPI_Gather(&here, (int)sizeof here, MPI_CHAR, places, (int)sizeof here, MPI_CHAR, 0,
                   MPI_COMM_WORLD));
    TRY(MPI_Reduce(&pinned, &all_pinned, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    TRY(MPI_Comm_free(&node));
    if (rank == 0) printf("pinned %d of %d ranks\n", all_pinned, ranks);
    return places;
}

/* ---- one pair ------------------------------------------------------------------------------ */

struct task { int repetitions, most_trips; size_t sizes[2]; }; /* short and long messages */

static void trip(bool first, int partner, unsigned char *out, unsigned char *in, size_t size)
{
    int n = (int)size;
    if (first) TRY(MPI_Send(out, n, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD));
    TRY(MPI_Recv(in, n, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (!first) TRY(MPI_Send(out, n, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD));
}

/* Seconds a round trip. */
static double time_trips(bool first, int partner, unsigned char *out, unsigned char *in, size_t size,
                         int trips)
{
    double start = MPI_Wtime();
    for (int i = 0; i < trips; i++) trip(first, partner, out, in, size);
    return (MPI_Wtime() - start) / trips;
}

static void checked_trip(bool first, int partner, unsigned char *out, unsigned char *in, size_t size)
{
    memset(in, 0, size);
    trip(first, partner, out, in, size);
    check_message(in, size, partner, rank);
}

/* Seconds a round trip, on the first rank of the pair. The warm-up tells how many trips to take. */
static double measure(int partner, size_t size, int most_trips)
{
    bool first = rank < partner;
    int trips = 0;
    unsigned char *out = memory(size, 1), *in = memory(size, 1);
    fill_message(out, size, rank, partner);
    checked_trip(first, partner, out, in, size);
    double time = time_trips(first, partner, out, in, size, 5);
    if (first) {
        trips = time * most_trips > LONGEST ? (int)(LONGEST / time) : most_trips;
        if (trips < 1) trips = 1;
        TRY(MPI_Send(&trips, 1, MPI_INT, partner, TAG_TRIPS, MPI_COMM_WORLD));
    } else {
        TRY(MPI_Recv(&trips, 1, MPI_INT, partner, TAG_TRIPS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    time = time_trips(first, partner, out, in, size, trips);
    checked_trip(first, partner, out, in, size);
    free(out);
    free(in);
    return time;
}

static void measure_both(int partner, struct task task, double times[2])
{
    for (int k = 0; k < 2; k++) times[k] = measure(partner, task.sizes[k], task.most_trips);
}

/* Receive without spinning: a rank that waits its turn must not disturb the pair that runs. */
static void receive_asleep(void *data, int count, MPI_Datatype type, int from, int tag)
{
    const struct timespec pause = {0, 200000};
    int here = 0;
    for (;;) {
        TRY(MPI_Iprobe(from, tag, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE));
        if (here) break;
        nanosleep(&pause, NULL);
    }
    TRY(MPI_Recv(data, count, type, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Every rank but 0: measure with the partner that rank 0 says, until it says -1. */
static void take_turns(struct task task)
{
    for (;;) {
        int partner;
        double times[2];
        receive_asleep(&partner, 1, MPI_INT, 0, TAG_TURN);
        if (partner < 0) break;
        measure_both(partner, task, times);
        if (rank < partner) TRY(MPI_Send(times, 2, MPI_DOUBLE, 0, TAG_RESULT, MPI_COMM_WORLD));
    }
}

/* Rank 0: let one pair run, and get its times. */
static void give_turn(int first, int second, struct task task, double times[2])
{
    TRY(MPI_Send(&first, 1, MPI_INT, second, TAG_TURN, MPI_COMM_WORLD));
    if (first == 0) {
        measure_both(second, task, times);
    } else {
        TRY(MPI_Send(&second, 1, MPI_INT, first, TAG_TURN, MPI_COMM_WORLD));
        receive_asleep(times, 2, MPI_DOUBLE, first, TAG_RESULT);
    }
}

/* ---- which pairs, and what came out (rank 0) ----------------------------------------------- */

struct pair { int first, second; };

static uint64_t next_random(uint64_t *state) /* SplitMix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct pair ordered(int a, int b)
{
    return a < b ? (struct pair){a, b} : (struct pair){b, a};
}

static struct pair *choose_pairs(int64_t most, uint64_t seed, int64_t *count)
{
    int64_t all = (int64_t)ranks * (ranks - 1) / 2, n = 0;
    int64_t room = all <= most ? all : most > ranks ? most : ranks;
    struct pair *pairs = memory((size_t)room, sizeof *pairs);
    if (all <= most) {
        for (int i = 0; i < ranks; i++)
            for (int j = i + 1; j < ranks; j++) pairs[n++] = (struct pair){i, j};
    } else {
        for (int i = 0; i < (ranks > 2 ? ranks : 1); i++) pairs[n++] = ordered(i, (i + 1) % ranks);
        while (n < most) {
            int i = (int)(next_random(&seed) % (uint64_t)ranks);
            int j = (int)(next_random(&seed) % (uint64_t)ranks);
            if (i != j) pairs[n++] = ordered(i, j);
        }
    }
    *count = n;
    return pairs;
}

/* Samples of one kind of pairs: latencies in us, bandwidths in MiB/s. */
struct samples { double *latency, *bandwidth; size_t n; };

static void add(struct samples *s, const double *latency, const double *bandwidth, size_t n)
{
    memcpy(s->latency + s->n, latency, n * sizeof *latency);
    memcpy(s->bandwidth + s->n, bandwidth, n * sizeof *bandwidth);
    s->n += n;
}

static void print_samples(const char *kind, struct samples *s)
{
    if (s->n == 0) return;
    struct spread l = spread_of(s->latency, s->n), b = spread_of(s->bandwidth, s->n);
    printf("%slatency min %.2f median %.2f max %.2f us\n", kind, l.min, l.median, l.max);
    printf("%sbandwidth min %.1f median %.1f max %.1f MiB/s\n", kind, b.min, b.median, b.max);
}

static void shuffle(int64_t *order, int64_t count, uint64_t *state)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)(next_random(state) % (uint64_t)(i + 1)), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}

/* Let all pairs run. Returns 2 n times of each: those of short messages, then those of long ones. */
static double *run_pairs(const struct pair *pairs, int64_t count, struct task task, uint64_t seed)
{
    int n = task.repetitions;
    double *all = memory((size_t)count * 2 * (size_t)n, sizeof *all), times[2];
    int64_t *order = memory((size_t)count, sizeof *order);
    for (int64_t p = 0; p < count; p++) order[p] = p;
    for (int round = 0; round < n; round++) {
        shuffle(order, count, &seed);
        for (int64_t i = 0; i < count; i++) {
            give_turn(pairs[order[i]].first, pairs[order[i]].second, task, times);
            for (int k = 0; k < 2; k++) all[(order[i] * 2 + k) * n + round] = times[k];
        }
    }
    free(order);
    return all;
}

/* How many repetitions lie below the interval, and as many above, that holds the median with 95 % or
 * more (David and Nagaraja 2003, section 7.1); -1 for fewer than 6. */
static int left_out(int n)
{
    double tail = 0;
    int below = 0;
    for (; below < n / 2; below++) {
        tail += exp(lgamma(n + 1) - lgamma(below + 1) - lgamma(n - below + 1) - n * log(2));
        if (tail > 0.025) break;
    }
    return below - 1;
}

/* The median, unit and interval of a figure of a pair. Returns the median; sorts the values. */
static double print_figure(const char *name, const char *unit, int decimals, double *values, int n)
{
    double median = spread_of(values, (size_t)n).median;
    int below = left_out(n);
    printf(" %s %.*f %s", name, decimals, median, unit);
    if (below >= 0)
        printf(" (%.*f..%.*f)", decimals, values[below], decimals, values[n - 1 - below]);
    return median;
}

static void conduct(const struct place *places, struct task task, int64_t most, uint64_t seed)
{
    enum { ALL, CORES, NODES, KINDS };
    int64_t count;
    size_t n = (size_t)task.repetitions;
    struct pair *pairs = choose_pairs(most, seed, &count), slow = {0}, narrow = {0};
    struct samples kinds[KINDS];
    double *all = run_pairs(pairs, count, task, seed), slowest = 0, narrowest = 0;
    for (int k = 0; k < KINDS; k++)
        kinds[k] = (struct samples){memory((size_t)count * n, sizeof(double)),
                                    memory((size_t)count * n, sizeof(double)), 0};
    for (int64_t p = 0; p < count; p++) {
        struct pair pair = pairs[p];
        struct place first = places[pair.first], second = places[pair.second];
        double *latency = all + (size_t)p * 2 * n, *bandwidth = latency + n;
        for (size_t r = 0; r < n; r++) {
            latency[r] *= 5e5;
            bandwidth[r] = 2.0 * (double)task.sizes[1] / 1048576 / bandwidth[r];
        }
        add(&kinds[ALL], latency, bandwidth, n);
        add(&kinds[first.node == second.node ? CORES : NODES], latency, bandwidth, n);
        printf("pair %d %d nodes %s %s cpus %d %d", pair.first, pair.second, first.name, second.name,
               first.cpu, second.cpu);
        double l = print_figure("latency", "us", 2, latency, task.repetitions);
        double b = print_figure("bandwidth", "MiB/s", 1, bandwidth, task.repetitions);
        printf("\n");
        if (p == 0 || l > slowest) slowest = l, slow = pair;
        if (p == 0 || b < narrowest) narrowest = b, narrow = pair;
    }
    int stop = -1;
    for (int i = 1; i < ranks; i++) TRY(MPI_Send(&stop, 1, MPI_INT, i, TAG_TURN, MPI_COMM_WORLD));
    print_samples("core pairs ", &kinds[CORES]);
    print_samples("node pairs ", &kinds[NODES]);
    print_samples("", &kinds[ALL]);
    printf("slowest pair %d %d nodes %s %s latency %.2f us\n", slow.first, slow.second,
           places[slow.first].name, places[slow.second].name, slowest);
    printf("narrowest pair %d %d nodes %s %s bandwidth %.1f MiB/s\n", narrow.first, narrow.second,
           places[narrow.first].name, places[narrow.second].name, narrowest);
    for (int k = 0; k < KINDS; k++) {
        free(kinds[k].latency);
        free(kinds[k].bandwidth);
    }
    free(all);
    free(pairs);
}

int main(int argc, char **argv)
{
    struct task task = {.repetitions = 11, .most_trips = 500, .sizes = {8, 1 << 20}};
    int64_t most_pairs = 4096;
    uint64_t seed = 1;
    bool pinning = true;
    int option;
    start_mpi(&argc, &argv);
    while ((option = getopt(argc, argv, ":r:l:s:i:p:x:u")) != -1) {
        if (option == 'r') task.repetitions = (int)number('r', optarg, 1, 100000);
        else if (option == 'l') task.sizes[0] = (size_t)number('l', optarg, 1, 1 << 30);
        else if (option == 's') task.sizes[1] = (size_t)number('s', optarg, 1, 1 << 30);
        else if (option == 'i') task.most_trips = (int)number('i', optarg, 1, 1000000000);
        else if (option == 'p') most_pairs = number('p', optarg, 1, 100000000);
        else if (option == 'x') seed = (uint64_t)number('x', optarg, 0, INT64_MAX);
        else if (option == 'u') pinning = false;
        else usage("-%c: unknown, or its value is missing", optopt);
    }
    if (optind < argc) usage("unexpected argument '%s'", argv[optind]);
    if (ranks < 2) usage("needs at least 2 ranks, got %d", ranks);
    if (rank == 0)
        printf("pingpong of %d ranks, %d repetitions, messages of %zu and %zu bytes\n", ranks,
               task.repetitions, task.sizes[0], task.sizes[1]);

    struct place *places = find_places(pinning);
    if (rank == 0) conduct(places, task, most_pairs, seed);
    else take_turns(task);
    free(places);
    if (rank == 0) printf("pingpong finished, all messages correct\n");
    MPI_Finalize();
    return 0;
}
