/* In place of Linda, as Gaussian's parallel links use it: workers on other hosts, started by rsh or
   ssh, that connect back by TCP and take pieces of work from the first process until there are none.
   It reads Gaussian's variables:

     GAUSS_WDEF    the hosts, as %LindaWorkers: n001:2,n002   (host, workers on it)
     GAUSS_LFLAGS  -nodelist "n001 n002" -mp 2   (in place of GAUSS_WDEF), -wait seconds
     GAUSS_SDEF    the launcher: rsh or ssh, or a path; else RSH, else rsh
     GAUSS_PDEF    threads of each worker, as %NProcShared
     GAUSS_MDEF    memory of each worker in words of 8 bytes: 100MW, as %Mem; it is touched

   The work is pi as the integral of 4 / (1 + x^2) by the midpoint rule, in 64 pieces.

     export GAUSS_WDEF=n001:2,n002:2 GAUSS_SDEF=rsh; ./linda */
#include "workers.h"

enum { PIECES = 64, STEPS = 200000 };

static const char *value_of(const char *name, const char *otherwise) {
    const char *found = getenv(name);
    return found && *found ? found : otherwise;
}

/* Add the workers of %LindaWorkers: n001:2,n002. */
static void read_hosts(const char *text, int each) {
    char copy[1 << 16], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ", \t")) != NULL) {
        char *colon = strchr(word, ':');
        int number = colon ? atoi(colon + 1) : each;
        if (colon) *colon = 0;
        if (!*word) continue;
        if (number < 1) fail("GAUSS_WDEF: %s: no number of workers above 0", word);
        while (number--) add_worker(word);
    }
}

/* Read -nodelist "a b" -mp n -wait s. */
static void read_flags(const char *text, int *each, double *patience) {
    char copy[1 << 16], list[1 << 16] = "", *at;
    snprintf(copy, sizeof copy, "%s", text);
    if ((at = strstr(copy, "-mp"))) *each = atoi(at + 3);
    if ((at = strstr(copy, "-wait"))) *patience = atof(at + 5);
    if ((at = strstr(copy, "-nodelist"))) {
        at += strlen("-nodelist");
        at += strspn(at, " ");
        int quoted = *at == '"' || *at == '\'';
        size_t length = quoted ? strcspn(at + 1, "\"'") : strcspn(at, " ");
        snprintf(list, sizeof list, "%.*s", (int)length, at + quoted);
    }
    if (*each < 1) fail("GAUSS_LFLAGS: -mp wants a number above 0");
    if (*list) read_hosts(list, *each);
}

static size_t words_of(const char *text) {
    char *unit;
    double number = strtod(text, &unit);
    double scale = *unit == 'G' ? 1e9 : *unit == 'M' ? 1e6 : *unit == 'K' ? 1e3 : 1;
    return (size_t)(number * scale);
}

static double piece_of_pi(int piece, int threads) {
    double sum = 0, width = 1.0 / PIECES / STEPS;
#pragma omp parallel for reduction(+ : sum) num_threads(threads)
    for (long i = (long)piece * STEPS; i < (long)(piece + 1) * STEPS; i++) {
        double x = (i + 0.5) * width;
        sum += 4 / (1 + x * x);
    }
    (void)threads;
    return sum * width;
}

static int work(char **arguments) {
    int threads = atoi(arguments[0]);
    size_t words = words_of(arguments[1]);
    double *memory = words ? malloc(words * sizeof *memory) : NULL;
    char line[LINE];
    if (words && !memory) {
        answer("no memory");
        return 1;
    }
    for (size_t i = 0; i < words; i += 512) memory[i] = i;
    answer("ready");
    while (next_order(line)) answer("%.17g", piece_of_pi(atoi(line), threads));
    free(memory);
    return 0;
}

int main(int count, char **words) {
    char **arguments, text[LINE];
    if (is_worker(count, words, &arguments)) return work(arguments);
    const char *rsh = value_of("GAUSS_SDEF", value_of("RSH", "rsh"));
    int each = 1, piece = 0, done = 0, working = 0, share[MAX_WORKERS] = {0};
    double patience = 30, sum = 0;
    read_flags(value_of("GAUSS_LFLAGS", ""), &each, &patience);
    if (!worker_count) read_hosts(value_of("GAUSS_WDEF", ""), each);
    if (!worker_count) fail("no hosts: GAUSS_WDEF, or -nodelist in GAUSS_LFLAGS, names them");
    snprintf(text, sizeof text, "%s %s", value_of("GAUSS_PDEF", "1"), value_of("GAUSS_MDEF", "0"));
    double taken = start_workers(rsh, text, patience), begin = now();
    printf("linda: %d workers, started by %s in %.3f s\n", worker_count, rsh, taken);
    while (done < PIECES || working < worker_count) {
        int one = next_to_speak();
        if (!hear(one, text))
            fail("worker on %s went away after %d of %d pieces", workers[one].host, done, PIECES);
        if (!strncmp(text, "no memory", 9)) fail("worker on %s: no memory", workers[one].host);
        if (!strncmp(text, "ready", 5)) {
            working++;
        } else {
            sum += strtod(text, NULL);
            done++;
            share[one]++;
        }
        if (piece < PIECES) tell(one, "%d", piece++);
    }
    end_workers();
    for (int i = 0; i < worker_count; i++)
        printf("worker %d on %s: %d pieces\n", i, workers[i].host, share[i]);
    printf("pi %.12f\nworking %.6f s\n", sum, now() - begin);
    return 0;
}
