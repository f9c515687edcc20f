/* libseatrial_threads - how many threads did a program run?
 *
 * A library for LD_PRELOAD: it counts the threads that a program and its libraries start, those of
 * its MPI and of drivers aside, which have threads of their own for messages. Each process appends a
 * line to a file of its node in the folder that SEATRIAL_THREADS names: as soon as it runs as many
 * threads as SEATRIAL_THREADS_ASKED says, or at its end with the most that it ran at a time.
 *
 *   rank 3 threads 6 mpi 1 program gtc
 *
 * The rank is that of the launcher's variable, "-" without one. A static program loads no library,
 * and leaves no line. A process that is killed, or ends by _exit, before it runs so many leaves none.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST (16 << 20) /* bytes of the file of a node */

/* Libraries whose threads are not the program's: those of MPI, of networks, of drivers. */
static const char *const OTHERS[] = {
    "libmpi",   "libmpich", "libmpifort", "libopen-", "libpmix",  "libprrte", "libpmi",    "libevent",
    "libucp",   "libuct",   "libucs",     "libucm",   "libfabric", "libpsm",  "libibverbs", "libmlx",
    "libcxi",   "libugni",  "libxpmem",   "libpami",  "libhcoll",  "libsharp", "libnccl",   "librccl",
    "libcuda",  "libnvidia", "libamdhip", "libhsa",   "libze_",    "libjemalloc", "mca_",   "libhwloc",
    "libslurm", "liblustreapi", "libdarshan", "libseatrial",
};
static const char *const RANKS[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID",
    "ALPS_APP_PE", "JSM_NAMESPACE_RANK", "SLURM_PROCID",
};

static int asked, running = 1, most = 1, told;

static void tell(int threads)
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
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *name = strrchr(program, '/');
    name = name ? name + 1 : program;
    for (char *each = name; *each; each++)
        if (*each <= ' ' || *each > '~')
            *each = '?';
    int mpi = dlsym(RTLD_DEFAULT, "MPI_Init") || dlsym(RTLD_DEFAULT, "mpi_init_");
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
        tell(now);
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SEATRIAL_THREADS_ASKED");
    asked = text ? atoi(text) : 0;
}

__attribute__((destructor)) static void end(void)
{
    tell(most);
}
