/* simulation: when a batch system would start jobs.
 *
 *   simulation < NUMBERS > STARTS
 *
 * All numbers are int64 of this host, times whole seconds. Read are
 *
 *   jobs, units, backfill, closures          0: none, 1: EASY, 2: whatever fits
 *   eligible, units, run, limit, started     arrays of jobs, the one with the highest priority first;
 *                                            started: -1, or when a job started that runs already
 *   arrival                                  the same jobs by the time at which they are eligible
 *   begin, end, units                        arrays of closures, which are in order and do not
 *                                            overlap; units: those that it closes, known ahead; -1:
 *                                            nothing starts meanwhile, which nobody knew ahead
 *
 * Written is the start of each job, -1 of one that never starts.
 *
 * EASY backfill: the first job that waits gets a reservation at the earliest time at which, by the
 * time limits of running jobs, enough units are free. A job behind it may start if it does not
 * delay that one (Lifka 1995; Mu'alem and Feitelson 2001). A start is checked against a few moments
 * ahead, each with its room: a job that would still run then needs no more units than that. They are
 * the time of the reservation, and the begins of closures.
 *
 * Waiting jobs are leaves of a tree over all jobs in their order. Its nodes have the fewest units and
 * the shortest limit below them, so that the next job that can start is found without looking at
 * each. simulation.py has the same rules in Python, for hosts without a C compiler.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE, EASY, ANY };
#define NEVER (INT64_MAX / 4)

struct moment {
    int64_t time, room;
};

struct held {
    int64_t until, units;
};

static int64_t jobs, total, backfill, closures;
static int64_t *eligible, *units, *run, *limit, *started, *arrival;
static int64_t *closed_from, *closed_until, *closed_units;

static int64_t leaves, *fewest, *shortest; /* the tree: node i is above 2 i and 2 i + 1 */
static int64_t waiting;

static int64_t *ending, running; /* a heap of running jobs by their ends */
static struct held *holding;     /* the same by the ends of their limits */
static int64_t used;

static int64_t *across;       /* units of running jobs that may run into a closure to come */
static int64_t ahead;         /* the first closure that begins later */
static struct moment *checks; /* moments ahead that starts must leave room for */
static int64_t check_count, free_units, longest;

static void fail(const char *text)
{
    fprintf(stderr, "simulation: %s\n", text);
    exit(1);
}

static void *room_for(int64_t number, size_t size)
{
    void *memory = calloc((size_t)number + 1, size);
    if (!memory)
        fail("out of memory");
    return memory;
}

static int64_t *read_numbers(int64_t number)
{
    int64_t *numbers = room_for(number, sizeof *numbers);
    if (fread(numbers, sizeof *numbers, (size_t)number, stdin) != (size_t)number)
        fail("the input is too short");
    return numbers;
}

/* ---- jobs that wait ---- */

static void set_leaf(int64_t job, int64_t need, int64_t time)
{
    int64_t node = leaves + job;
    fewest[node] = need;
    shortest[node] = time;
    while (node >>= 1) {
        int64_t left = 2 * node, right = left + 1;
        fewest[node] = fewest[left] < fewest[right] ? fewest[left] : fewest[right];
        shortest[node] = shortest[left] < shortest[right] ? shortest[left] : shortest[right];
    }
}

/* Return whether a job of so many units and seconds could start now. */
static bool fits(int64_t now, int64_t need, int64_t time)
{
    if (need > free_units)
        return false;
    for (int64_t i = 0; i < check_count; i++)
        if (need > checks[i].room && now + time > checks[i].time)
            return false;
    return true;
}

/* Return the first job from `from` on, below a node, that fits; -1 where there is none. */
static int64_t next_below(int64_t node, int64_t size, int64_t first, int64_t from, int64_t now)
{
    if (first + size <= from || !fits(now, fewest[node], shortest[node]))
        return -1;
    if (size == 1)
        return first;
    int64_t half = size / 2, found = next_below(2 * node, half, first, from, now);
    return found >= 0 ? found : next_below(2 * node + 1, half, first + half, from, now);
}

static int64_t first_waiting(void)
{
    int64_t node = 1;
    while (node < leaves)
        node = fewest[2 * node] < NEVER ? 2 * node : 2 * node + 1;
    return node - leaves;
}

/* ---- jobs that run ---- */

static int64_t end_of(int64_t job) { return started[job] + run[job]; }

/* Return the place of the first running job whose limit ends at a time or later. */
static int64_t place_of(int64_t time)
{
    int64_t low = 0, high = running;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (holding[middle].until < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void count_across(int64_t until, int64_t number)
{
    for (int64_t i = ahead; i < closures && closed_from[i] < until; i++)
        across[i] += number;
}

static void begin(int64_t job, int64_t now)
{
    int64_t until = now + limit[job], place = place_of(until), child = running;
    memmove(holding + place + 1, holding + place, (size_t)(running - place) * sizeof *holding);
    holding[place] = (struct held){until, units[job]};
    started[job] = now;
    while (child && end_of(ending[(child - 1) / 2]) > end_of(job)) {
        ending[child] = ending[(child - 1) / 2];
        child = (child - 1) / 2;
    }
    ending[child] = job;
    running++;
    used += units[job];
    count_across(until, units[job]);
}

static void end_first(void)
{
    int64_t job = ending[0], until = started[job] + limit[job], place = place_of(until);
    while (holding[place].units != units[job])
        place++;
    running--;
    memmove(holding + place, holding + place + 1, (size_t)(running - place) * sizeof *holding);
    int64_t last = ending[running], node = 0;
    for (int64_t child; (child = 2 * node + 1) < running; node = child) {
        if (child + 1 < running && end_of(ending[child + 1]) < end_of(ending[child]))
            child++;
        if (end_of(ending[child]) >= end_of(last))
            break;
        ending[node] = ending[child];
    }
    ending[node] = last;
    used -= units[job];
    count_across(until, -units[job]);
}

/* ---- starts ---- */

static bool is_known(int64_t closure) { return closed_units[closure] >= 0; }

static void start(int64_t job, int64_t now)
{
    set_leaf(job, NEVER, NEVER);
    waiting--;
    begin(job, now);
    free_units -= units[job];
    for (int64_t i = 0; i < check_count; i++)
        if (now + limit[job] > checks[i].time)
            checks[i].room -= units[job];
}

/* Return whether a job that starts at a time, later than now, has the room that closures leave. */
static bool has_room(int64_t job, int64_t time)
{
    for (int64_t i = ahead; i < closures && closed_from[i] < time + limit[job]; i++)
        if (closed_from[i] > time && is_known(i) && total - closed_units[i] - across[i] < units[job])
            return false;
    return true;
}

/* Reserve units for the first job that waits, which does not fit now. `closure`: the first that has
 * not ended. */
static void reserve(int64_t job, int64_t closure)
{
    int64_t place = 0, released = 0;
    while (place < running || closure < closures) {
        int64_t time = place < running ? holding[place].until : NEVER;
        if (closure < closures && closed_until[closure] < time)
            time = closed_until[closure];
        while (place < running && holding[place].until == time)
            released += holding[place++].units;
        while (closure < closures && closed_until[closure] <= time)
            closure++;
        int64_t room = total - used + released;
        if (closure < closures && closed_from[closure] <= time && is_known(closure))
            room -= closed_units[closure];
        if (room < units[job] || !has_room(job, time))
            continue;
        for (int64_t i = 0; i < check_count; i++)
            if (checks[i].time >= time && checks[i].time < time + limit[job])
                checks[i].room -= units[job];
        checks[check_count++] = (struct moment){time, room - units[job]};
        return;
    }
}

static void start_ready(int64_t now)
{
    while (ahead < closures && closed_from[ahead] <= now)
        ahead++;
    bool inside = ahead && closed_until[ahead - 1] > now;
    if (!waiting || (inside && !is_known(ahead - 1)))
        return;
    free_units = total - used - (inside ? closed_units[ahead - 1] : 0);
    check_count = 0;
    for (int64_t i = ahead; i < closures && closed_from[i] < now + longest; i++)
        if (is_known(i))
            checks[check_count++] =
                (struct moment){closed_from[i], total - closed_units[i] - across[i]};
    int64_t job = first_waiting();
    while (waiting && fits(now, units[job], limit[job])) {
        start(job, now);
        job = first_waiting();
    }
    if (!waiting || backfill == NONE || free_units <= 0)
        return;
    if (backfill == EASY)
        reserve(job, inside ? ahead - 1 : ahead);
    while ((job = next_below(1, leaves, 0, job + 1, now)) >= 0)
        start(job, now);
}

static void simulate(void)
{
    int64_t arrived = 0, open = 0; /* open: the first closure that ends later */
    for (int64_t job = 0; job < jobs; job++)
        if (started[job] >= 0)
            begin(job, started[job]);
    while (arrived < jobs || waiting) {
        int64_t now = arrived < jobs ? eligible[arrival[arrived]] : NEVER;
        if (running && end_of(ending[0]) < now)
            now = end_of(ending[0]);
        if (open < closures && closed_until[open] < now)
            now = closed_until[open];
        if (now == NEVER)
            return;
        while (running && end_of(ending[0]) <= now)
            end_first();
        for (; arrived < jobs && eligible[arrival[arrived]] <= now; arrived++) {
            int64_t job = arrival[arrived];
            if (started[job] >= 0)
                continue;
            set_leaf(job, units[job], limit[job]);
            waiting++;
        }
        while (open < closures && closed_until[open] <= now)
            open++;
        start_ready(now);
    }
}

int main(void)
{
    int64_t *sizes = read_numbers(4);
    jobs = sizes[0], total = sizes[1], backfill = sizes[2], closures = sizes[3];
    if (jobs < 0 || closures < 0 || jobs > INT32_MAX || closures > INT32_MAX)
        fail("the input has impossible sizes");
    int64_t **of_jobs[] = {&eligible, &units, &run, &limit, &started, &arrival};
    for (size_t i = 0; i < sizeof of_jobs / sizeof *of_jobs; i++)
        *of_jobs[i] = read_numbers(jobs);
    int64_t **of_closures[] = {&closed_from, &closed_until, &closed_units};
    for (size_t i = 0; i < sizeof of_closures / sizeof *of_closures; i++)
        *of_closures[i] = read_numbers(closures);
    for (leaves = 1; leaves < jobs; leaves *= 2)
        ;
    fewest = room_for(2 * leaves, sizeof *fewest);
    shortest = room_for(2 * leaves, sizeof *shortest);
    for (int64_t node = 0; node < 2 * leaves; node++)
        fewest[node] = shortest[node] = NEVER;
    for (int64_t job = 0; job < jobs; job++)
        longest = limit[job] > longest ? limit[job] : longest;
    ending = room_for(jobs, sizeof *ending);
    holding = room_for(jobs, sizeof *holding);
    across = room_for(closures, sizeof *across);
    checks = room_for(closures + 1, sizeof *checks);
    simulate();
    return fwrite(started, sizeof *started, (size_t)jobs, stdout) != (size_t)jobs || fflush(stdout);
}
