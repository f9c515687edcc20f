/* Workers on other hosts, started by rsh or ssh, that connect back by TCP: what Linda, replica
   exchange and charmrun do.

   The first process listens, starts a worker by `RSH HOST PROGRAM --worker HOST PORT COOKIE NUMBER
   ...`, and waits until all have come. Both sides then speak in lines of text. A worker that does not
   come, or goes away, ends the first process with exit code 1 and a sentence that names it. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORKERS = 4096, LINE = 512 };

struct worker {
    char host[256];
    pid_t starter;    /* the process of rsh; 0: it has ended, with `code` */
    int code;
    FILE *in, *out;   /* to the worker; NULL: it has not come */
};

static struct worker workers[MAX_WORKERS];
static int worker_count;
static const char *what_they_are = "worker";   /* in messages */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void fail(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    fflush(stdout);
    fputs("seatrial: ", stderr);   /* so that the verdict of the run has the sentence */
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
    va_end(rest);
    for (int i = 0; i < worker_count; i++)
        if (workers[i].starter > 0) kill(workers[i].starter, SIGTERM);
    exit(1);
}

/* Add a worker that is to run on a host. */
static void add_worker(const char *host) {
    if (worker_count == MAX_WORKERS) fail("more than %d workers", MAX_WORKERS);
    snprintf(workers[worker_count++].host, sizeof workers->host, "%.255s", host);
}

static void speak_at_once(int at) {
    int one = 1;
    setsockopt(at, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void start_worker(int number, const char *rsh, const char *line) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) fail("fork: %s", strerror(errno));
    if (pid == 0) {
        if (!freopen("/dev/null", "r", stdin)) _exit(126);
        dup2(2, 1);   /* what rsh says is no result */
        execlp(rsh, rsh, workers[number].host, line, (char *)NULL);
        fprintf(stderr, "%s: %s\n", rsh, strerror(errno));
        _exit(127);
    }
    workers[number].starter = pid;
}

/* Note which starters have ended. */
static void reap_starters(void) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < worker_count; i++)
            if (workers[i].starter == pid) {
                workers[i].starter = 0;
                workers[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
}

static void never_came(int number, const char *why) {
    fail("%s on %s never came%s", what_they_are, workers[number].host, why);
}

static void accept_worker(int at, long cookie) {
    int caller = accept(at, NULL, NULL);
    char line[LINE];
    int number;
    long told;
    if (caller < 0) return;
    FILE *in = fdopen(caller, "r"), *out = fdopen(dup(caller), "w");
    if (in) setvbuf(in, NULL, _IONBF, 0);   /* what is in a buffer is not seen by poll */
    struct timeval wait = {5, 0};   /* a stranger that says nothing stops nobody for long */
    setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (in && out && fgets(line, sizeof line, in) && sscanf(line, "%d %ld", &number, &told) == 2 &&
        told == cookie && number >= 0 && number < worker_count && !workers[number].in) {
        wait.tv_sec = 0;
        setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        speak_at_once(caller);
        workers[number].in = in;
        workers[number].out = out;
        return;
    }
    if (in) fclose(in);
    if (out) fclose(out);
}

/* Start all workers and wait until they have come. Each is PROGRAM of this process, by its path, with
   `arguments` behind its number. Returns the seconds that this took. */
static double start_workers(const char *rsh, const char *arguments, double patience) {
    double begin = now();
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    char own[256], program[4096], line[8192];
    int at = socket(AF_INET, SOCK_STREAM, 0), here = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || gethostname(own, sizeof own)) fail("who am I? %s", strerror(errno));
    program[length] = 0;
    signal(SIGPIPE, SIG_IGN);
    if (at < 0 || bind(at, (struct sockaddr *)&address, size) || listen(at, 128) ||
        getsockname(at, (struct sockaddr *)&address, &size))
        fail("cannot listen: %s", strerror(errno));
    long cookie = (long)time(NULL) * 1000003L ^ ((long)getpid() << 20) ^ (long)(begin * 1e9);
    cookie &= 0x7fffffffffffL;
    for (int i = 0; i < worker_count; i++) {
        snprintf(line, sizeof line, "exec '%s' --worker %s %d %ld %d %s", program, own,
                 ntohs(address.sin_port), cookie, i, arguments);
        start_worker(i, rsh, line);
    }
    while (here < worker_count) {
        struct pollfd one = {at, POLLIN, 0};
        if (poll(&one, 1, 50) > 0) accept_worker(at, cookie);
        reap_starters();
        here = 0;
        for (int i = 0; i < worker_count; i++) here += workers[i].in != NULL;
        for (int i = 0; i < worker_count && here < worker_count; i++)
            if (!workers[i].in && !workers[i].starter) {
                char why[80];
                snprintf(why, sizeof why, ": %s ended with exit code %d", rsh, workers[i].code);
                if (poll(&one, 1, 200) <= 0) never_came(i, why);
                break;
            }
        if (here < worker_count && now() - begin > patience)
            for (int i = 0; i < worker_count; i++)
                if (!workers[i].in) never_came(i, " within the time");
    }
    close(at);
    return now() - begin;
}

static void tell(int number, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vfprintf(workers[number].out, format, rest);
    va_end(rest);
    fputc('\n', workers[number].out);
    fflush(workers[number].out);
}

/* Read a line of a worker; 0 if it went away. */
static int hear(int number, char *line) {
    return fgets(line, LINE, workers[number].in) != NULL;
}

/* Wait for the next worker that says something. */
static int next_to_speak(void) {
    static struct pollfd all[MAX_WORKERS];
    for (int i = 0; i < worker_count; i++) all[i] = (struct pollfd){fileno(workers[i].in), POLLIN, 0};
    while (poll(all, worker_count, -1) < 0)
        if (errno != EINTR) fail("poll: %s", strerror(errno));
    for (int i = 0; i < worker_count; i++)
        if (all[i].revents) return i;
    return 0;
}

/* Tell all workers to end, and wait for them. */
static void end_workers(void) {
    for (int i = 0; i < worker_count; i++) {
        tell(i, "end");
        fclose(workers[i].out);
        fclose(workers[i].in);
    }
    for (int i = 0; i < worker_count; i++)
        if (workers[i].starter > 0) waitpid(workers[i].starter, NULL, 0);
}

/* ---- a worker --------------------------------------------------------------------------------- */

static FILE *from_first, *to_first;
static int own_number;

/* Return whether this process is a worker, by its arguments; then it has connected back, and
   `arguments` are those behind its number. */
static int is_worker(int count, char **words, char ***arguments) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (count < 6 || strcmp(words[1], "--worker")) return 0;
    int fault = getaddrinfo(words[2], words[3], &hints, &found);
    if (fault) fail("%s: %s", words[2], gai_strerror(fault));
    int at = socket(AF_INET, SOCK_STREAM, 0);
    if (at < 0 || connect(at, found->ai_addr, found->ai_addrlen))
        fail("cannot connect to %s: %s", words[2], strerror(errno));
    speak_at_once(at);
    from_first = fdopen(at, "r");
    to_first = fdopen(dup(at), "w");
    own_number = atoi(words[5]);
    fprintf(to_first, "%d %s\n", own_number, words[4]);
    fflush(to_first);
    *arguments = words + 6;
    return 1;
}

static int next_order(char *line) {
    return fgets(line, LINE, from_first) != NULL && strncmp(line, "end", 3) != 0;
}

static void answer(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vfprintf(to_first, format, rest);
    va_end(rest);
    fputc('\n', to_first);
    fflush(to_first);
}
