/* Replica exchange over sockets: replicas on the hosts of a file, started by rsh, each a Monte Carlo
   walk of 8 harmonic oscillators at a temperature of its own; neighbours in temperature exchange
   (Sugita and Okamoto, Chemical Physics Letters 314, 1999).

     ./replica HOSTS EXCHANGES [KILLED]

   HOSTS has a line for each replica, its host ($NODEFILE). Checked are: each replica works at the
   temperature that it was given; the number of exchanges that were tried; that some were accepted;
   and at each temperature T the mean energy, 4 T, within five standard errors. KILLED is a replica
   that gets SIGKILL at half time, to see that its loss is told. */
#include "workers.h"
#include <math.h>

enum { FREEDOM = 8, STEPS = 400, WARM = 10 };

static double uniform(void) { return (random() + 0.5) / (RAND_MAX + 1.0); }

static int work(char **arguments) {
    double x[FREEDOM] = {0}, temperature;
    char line[LINE];
    int killed = atoi(arguments[0]), half = atoi(arguments[1]);
    srandom(1000 + own_number);
    for (int round = 0; next_order(line); round++) {
        temperature = strtod(line, NULL);
        if (killed == own_number && round == half) raise(SIGKILL);
        double step = sqrt(temperature);
        for (int s = 0; s < STEPS; s++)
            for (int i = 0; i < FREEDOM; i++) {
                double to = x[i] + step * (2 * uniform() - 1) * 2;
                double rise = (to * to - x[i] * x[i]) / 2;
                if (rise <= 0 || uniform() < exp(-rise / temperature)) x[i] = to;
            }
        double energy = 0;
        for (int i = 0; i < FREEDOM; i++) energy += x[i] * x[i] / 2;
        answer("%.17g %.17g", temperature, energy);
    }
    return 0;
}

static double temperature_of(int level) { return pow(1.25, level); }

int main(int count, char **words) {
    char **arguments, line[LINE];
    if (is_worker(count, words, &arguments)) return work(arguments);
    if (count < 3) {
        fprintf(stderr, "usage: replica HOSTS EXCHANGES [KILLED]\n");
        return 2;
    }
    what_they_are = "replica";
    FILE *hosts = fopen(words[1], "r");
    if (!hosts) fail("%s: %s", words[1], strerror(errno));
    while (fgets(line, sizeof line, hosts)) {
        line[strcspn(line, "\n")] = 0;
        if (*line) add_worker(line);
    }
    fclose(hosts);
    int rounds = atoi(words[2]), n = worker_count, tried = 0, accepted = 0, wrong = 0;
    if (n < 2 || rounds < 2 * WARM) fail("at least 2 replicas and %d exchanges are needed", 2 * WARM);
    static int level[MAX_WORKERS], holder[MAX_WORKERS];
    static double energy[MAX_WORKERS], sum[MAX_WORKERS];
    snprintf(line, sizeof line, "%s %d", count > 3 ? words[3] : "-1", rounds / 2);
    const char *rsh = getenv("RSH");
    double taken = start_workers(rsh && *rsh ? rsh : "rsh", line, 30), begin = now();
    printf("replica: %d replicas, started in %.3f s\n", n, taken);
    for (int i = 0; i < n; i++) level[i] = holder[i] = i;
    srandom(1);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) tell(i, "%.17g", temperature_of(level[i]));
        for (int i = 0; i < n; i++) {
            double told;
            if (!hear(i, line) || sscanf(line, "%lf %lf", &told, &energy[i]) != 2)
                fail("replica %d on %s went away after %d of %d exchanges", i, workers[i].host, round,
                     rounds);
            wrong += told != temperature_of(level[i]);
            if (round >= WARM) sum[level[i]] += energy[i];
        }
        for (int low = round % 2; low + 1 < n; low += 2) {
            int a = holder[low], b = holder[low + 1];
            double gain = (1 / temperature_of(low) - 1 / temperature_of(low + 1)) *
                          (energy[a] - energy[b]);
            tried++;
            if (gain >= 0 || uniform() < exp(gain)) {
                accepted++;
                level[a] = low + 1, level[b] = low;
                holder[low] = b, holder[low + 1] = a;
            }
        }
    }
    double seconds = now() - begin;
    end_workers();
    printf("exchanges %d tried %d accepted %d\n", rounds, tried, accepted);
    if (tried != (rounds + 1) / 2 * (n / 2) + rounds / 2 * ((n - 1) / 2)) wrong++;
    for (int i = 0; i < n; i++) {
        double t = temperature_of(i), mean = sum[i] / (rounds - WARM);
        double error = t * sqrt(FREEDOM / 2.0 / (rounds - WARM));
        int off = fabs(mean - FREEDOM / 2.0 * t) > 5 * error;
        printf("temperature %.4f energy %.4f expected %.4f%s\n", t, mean, FREEDOM / 2.0 * t,
               off ? " WRONG" : "");
        wrong += off;
    }
    if (!accepted || wrong) fail("%d things are wrong, %d exchanges accepted", wrong, accepted);
    printf("rate %.3f exchanges/s\nall exchanges are right\n", rounds / seconds);
    return 0;
}
