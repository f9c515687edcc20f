/* In place of charmrun, which starts NAMD and other programs of Charm++: it reads a nodelist, starts
   its processes by the shell that the list names, and passes a token through all of them.

     ./charmrun +p4 ++nodelist nodelist [++remote-shell rsh]

   The nodelist is that of Charm++:

     group main ++shell rsh
       host n001 ++cpus 2
       host n002

   Processes fill the cpus of one host after the other, and begin again when all are full. */
#include "workers.h"

enum { ROUNDS = 50 };

struct place { char host[256]; int cpus; };

static int read_nodelist(const char *name, struct place *places, char *shell) {
    char line[4096];
    int count = 0, in_group = 0, number = 0;
    FILE *file = fopen(name, "r");
    if (!file) fail("%s: %s", name, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        char *rest = line, *word, *words[64];
        int n = 0;
        number++;
        line[strcspn(line, "#\n")] = 0;
        while (n < 64 && (word = strsep(&rest, " \t")) != NULL)
            if (*word) words[n++] = word;
        if (!n) continue;
        if (!strcmp(words[0], "group")) {
            in_group = n > 1 && !strcmp(words[1], "main");
        } else if (strcmp(words[0], "host")) {
            fail("%s:%d: %s is neither group nor host", name, number, words[0]);
        } else if (in_group) {
            if (n < 2 || count == MAX_WORKERS) fail("%s:%d: no host, or too many", name, number);
            snprintf(places[count].host, sizeof places->host, "%s", words[1]);
            places[count++].cpus = 1;
        }
        for (int i = 1; i + 1 < n; i++) {
            if (in_group && count && !strcmp(words[i], "++cpus")) places[count - 1].cpus = atoi(words[i + 1]);
            if (in_group && !strcmp(words[i], "++shell")) snprintf(shell, 256, "%s", words[i + 1]);
        }
    }
    fclose(file);
    if (!count) fail("%s: no host in group main", name);
    return count;
}

static int work(void) {
    char line[LINE], own[256];
    gethostname(own, sizeof own);
    answer("%s", own);
    while (next_order(line)) answer("%ld", atol(line) + own_number);
    return 0;
}

int main(int count, char **words) {
    static struct place places[MAX_WORKERS];
    const char *list = "nodelist", *asked = NULL;
    char **arguments, line[LINE], shell[256] = "rsh";
    int processes = 1, hosts;
    if (is_worker(count, words, &arguments)) return work();
    for (int i = 1; i < count; i++) {
        if (!strncmp(words[i], "+p", 2)) processes = atoi(words[i] + 2);
        else if (!strcmp(words[i], "++nodelist") && i + 1 < count) list = words[++i];
        else if (!strcmp(words[i], "++remote-shell") && i + 1 < count) asked = words[++i];
    }
    hosts = read_nodelist(list, places, shell);
    what_they_are = "process";
    while (worker_count < processes)
        for (int h = 0; h < hosts; h++)
            for (int i = 0; i < places[h].cpus && worker_count < processes; i++) add_worker(places[h].host);
    double taken = start_workers(asked ? asked : shell, "", 30);
    printf("Charmrun> %d processes on %d hosts, started in %.3f s\n", processes, hosts, taken);
    for (int i = 0; i < processes; i++) {
        if (!hear(i, line)) fail("process on %s went away", workers[i].host);
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, workers[i].host)) fail("process %d is on %s, not on %s", i, line, workers[i].host);
    }
    double begin = now();
    long token = 0, expected = (long)ROUNDS * processes * (processes - 1) / 2;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < processes; i++) {
            tell(i, "%ld", token);
            if (!hear(i, line)) fail("process %d on %s went away", i, workers[i].host);
            token = atol(line);
        }
    printf("hop %.3f us\n", 1e6 * (now() - begin) / ROUNDS / processes / 2);
    end_workers();
    if (token != expected) fail("the token is %ld, not %ld", token, expected);
    printf("token %ld is right\n", token);
    return 0;
}
