/* libseatrial_threads - how many threads did a program run?
 *
 * A library for LD_PRELOAD: it counts the threads that a program and its libraries start, those of
 * its MPI and of drivers aside, which have threads of their own for messages. Each process appends a
 * line to a file of its node in the folder that SEATRIAL_THREADS names: as soon as it runs as many
 * threads as SEATRIAL_THREADS_ASKED says, or at its end with the most that it ran at a time.
 *
 *   rank 3 threads 6 mpi 1 program gtc
 *
 * The rank is that of the launcher's variable, "-" without one. A process that is killed, or ends by
 * _exit, before it runs so many leaves no line.
 *
 * A static program loads no library. With -DWATCH this is a program, which the script job.threads
 * starts before it becomes the program of the test: it looks at the threads of that process by /proc,
 * if it is a static one, and appends a line as soon as so many have computed. It proves nothing by
 * what it does not see, as it may have looked too late.
 */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGEST (16 << 20) /* bytes of the file of a node */

static const char *const RANKS[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID",
    "ALPS_APP_PE", "JSM_NAMESPACE_RANK", "SLURM_PROCID",
};

static int asked, told;

/* Append the line of a process whose program is at `exe`. */
static void tell(int threads, const char *exe, int mpi)
{
    const char *folder = getenv("SEATRIAL_THREADS"), *rank = NULL;
    char host[256] = "", path[4096], program[4096] = "", line[600];
    struct stat about;
    if (!folder || !*folder || __atomic_exchange_n(&told, 1, __ATOMIC_SEQ_CST))
        return;
    for (size_t i = 0; i < sizeof RANKS / sizeof *RANKS && !rank; i++)
        rank = getenv(RANKS[i]);
    for (const char *each = rank ? rank : "-"; *each; each++)
        if ((*each < '0' || *each > '9') && strcmp(each, "-"))
            return;
    gethostname(host, sizeof host - 1);
    ssize_t length = readlink(exe, program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *name = strrchr(program, '/');
    name = name ? name + 1 : program;
    for (char *each = name; *each; each++)
        if (*each <= ' ' || *each > '~')
            *each = '?';
    int size = snprintf(line, sizeof line, "rank %.20s threads %d mpi %d program %.200s\n",
                        rank ? rank : "-", threads, mpi, name);
    if (snprintf(path, sizeof path, "%s/%s", folder, host) >= (int)sizeof path)
        return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0)
        return;
    if (!fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size < LARGEST &&
        write(file, line, (size_t)size) != size)
        told = 1;
    close(file);
}

#ifdef WATCH

/* Return whether a program is static: an ELF file of 64 bits without an interpreter. */
static int is_static(const char *path)
{
    Elf64_Ehdr header;
    Elf64_Phdr each;
    int file = open(path, O_RDONLY | O_CLOEXEC), found = 0;
    if (file < 0 || pread(file, &header, sizeof header, 0) != sizeof header)
        header.e_phnum = 0;
    for (int i = 0; i < header.e_phnum; i++) {
        off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof each);
        if (pread(file, &each, sizeof each, at) != sizeof each || each.p_type == PT_INTERP)
            break;
        found |= i + 1 == header.e_phnum;
    }
    if (file >= 0)
        close(file);
    return found;
}

/* Return how many threads have computed at least a tenth as long as the busiest one; 0: none did
 * yet; -1: the process has ended. */
static int computing(const char *process)
{
    enum { MOST = 1 << 16 };
    static long ticks[MOST];
    char path[300], text[1024];
    long busiest = 0;
    int count = 0, found = 0;
    snprintf(path, sizeof path, "/proc/%s/task", process);
    DIR *threads = opendir(path);
    if (!threads)
        return -1;
    for (struct dirent *each; count < MOST && (each = readdir(threads));) {
        if (!isdigit((unsigned char)each->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%s/task/%.20s/stat", process, each->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
        if (file >= 0)
            close(file);
        text[length > 0 ? length : 0] = 0;
        unsigned long user, system;
        const char *rest = strrchr(text, ')');
        if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                            &system) != 2)
            continue;
        ticks[count++] = (long)(user + system);
        busiest = busiest > ticks[count - 1] ? busiest : ticks[count - 1];
    }
    closedir(threads);
    for (int i = 0; i < count; i++)
        found += ticks[i] > 0 && ticks[i] >= busiest / 10;
    return found;
}

/* The process is that of the script until the script becomes the program. */
int main(int count, char **words)
{
    char shell[4096] = "", exe[4096] = "", path[64];
    const char *text = getenv("SEATRIAL_THREADS_ASKED"), *process = count > 1 ? words[1] : "";
    asked = text ? atoi(text) : 0;
    snprintf(path, sizeof path, "/proc/%.20s/exe", process);
    if (readlink(path, shell, sizeof shell - 1) <= 0 || asked < 2)
        return 0;
    pid_t child = fork();
    if (child != 0) {
        waitpid(child, NULL, 0);
        return 0;
    }
    setsid(); /* nobody waits for it, or for what it holds open */
    for (int file = 0; file < 1024; file++)
        close(file);
    if (fork() != 0)
        _exit(0);
    for (useconds_t pause = 5000;; pause = pause < 500000 ? pause * 5 / 4 : 500000) {
        memset(exe, 0, sizeof exe);
        if (readlink(path, exe, sizeof exe - 1) <= 0)
            return 0;
        if (strcmp(exe, shell)) {
            int threads = is_static(path) ? computing(process) : -1;
            if (threads >= asked)
                tell(threads, path, 1);
            if (threads < 0 || threads >= asked)
                return 0;
        }
        usleep(pause);
    }
}

#else

/* Libraries whose threads are not the program's: those of MPI, of networks, of drivers. */
static const char *const OTHERS[] = {
    "libmpi",   "libmpich", "libmpifort", "libopen-", "libpmix",  "libprrte", "libpmi",    "libevent",
    "libucp",   "libuct",   "libucs",     "libucm",   "libfabric", "libpsm",  "libibverbs", "libmlx",
    "libcxi",   "libugni",  "libxpmem",   "libpami",  "libhcoll",  "libsharp", "libnccl",   "librccl",
    "libcuda",  "libnvidia", "libamdhip", "libhsa",   "libze_",    "libjemalloc", "mca_",   "libhwloc",
    "libslurm", "liblustreapi", "libdarshan", "libseatrial",
};

static int running = 1, most = 1;

static void tell_own(int threads)
{
    int mpi = dlsym(RTLD_DEFAULT, "MPI_Init") || dlsym(RTLD_DEFAULT, "mpi_init_");
    tell(threads, "/proc/self/exe", mpi);
}

static int is_of_another(const void *caller)
{
    Dl_info about;
    if (!dladdr(caller, &about) || !about.dli_fname)
        return 0;
    const char *name = strrchr(about.dli_fname, '/');
    name = name ? name + 1 : about.dli_fname;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (!strncmp(name, OTHERS[i], strlen(OTHERS[i])))
            return 1;
    return 0;
}

struct start {
    void *(*begin)(void *);
    void *argument;
};

static void *begin_counted(void *given)
{
    struct start start = *(struct start *)given;
    free(given);
    void *value = start.begin(start.argument);
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    return value;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *),
                   void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&real, &found, sizeof real);
    }
    struct start *start = is_of_another(__builtin_return_address(0)) ? NULL : malloc(sizeof *start);
    if (!start)
        return real(thread, attributes, begin, argument);
    start->begin = begin;
    start->argument = argument;
    int now = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
    int code = real(thread, attributes, begin_counted, start);
    if (code) {
        __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
        free(start);
        return code;
    }
    for (int seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST); now > seen;)
        if (__atomic_compare_exchange_n(&most, &seen, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            break;
    if (asked && now >= asked)
        tell_own(now);
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SEATRIAL_THREADS_ASKED");
    asked = text ? atoi(text) : 0;
}

__attribute__((destructor)) static void end(void)
{
    tell_own(most);
}
#endif
