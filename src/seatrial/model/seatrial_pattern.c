/* libseatrial_pattern - who sends how much to whom?
 *
 * A library for LD_PRELOAD, between a program and its MPI (PMPI); mpicc -fPIC -c compiles it, and
 * cc -shared links it. Each rank counts the messages and bytes that it sends to each other rank of
 * MPI_COMM_WORLD, and its calls by function and size. MPI_Finalize writes them to the folder that SEATRIAL_PATTERN names, one file for each rank,
 * LAUNCH.RANK, where LAUNCH is a number that all ranks of one start of the program share:
 *
 *   seatrial record 1
 *   rank 0
 *   ranks 4
 *   host n001
 *   outside 0 0                   messages and bytes to ranks that are not in MPI_COMM_WORLD
 *   pairs 1
 *   calls 2
 *   0 1 10 81920                  from, to, messages, bytes
 *   MPI_Allreduce 8 3 24          calls with at most 8 (and more than 4) bytes: number, their bytes
 *   MPI_Isend 8192 10 81920
 *   end
 *
 * Rank 0 writes LAUNCH.begin in MPI_Init. Without SEATRIAL_PATTERN calls are passed on and nothing is
 * counted. A program with an MPI of another family than the one this was compiled for ends in
 * MPI_Init, as the two differ in their types; the file other-mpi says which it has.
 *
 * A message is counted where it is sent; bytes of MPI_Get, MPI_Alltoallv and MPI_Alltoallw where
 * they arrive. MPI_Alltoall counts as messages on a communicator that has fewer ranks than
 * MPI_COMM_WORLD. All other collectives are calls only: the MPI decides who sends to whom. The bytes
 * of a collective call are those of the buffer that the rank gives, or gets from a root.
 *
 * It is not linked to an MPI: its PMPI_ functions are those of the program's own, which may be another
 * version than that of the compiler, or be loaded late (Python). So no data of the MPI is named here.
 *
 * Fortran: Open MPI's bindings call PMPI_ functions, so those of mpif.h, `use mpi` and `use mpi_f08`
 * are wrapped, too. What they call inside is not counted again.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A function that returns at once comes after the other. */
#define KINDS(X)                                                                                   \
    X(Send) X(Isend) X(Bsend) X(Ibsend) X(Ssend) X(Issend) X(Rsend) X(Irsend) X(Sendrecv)          \
    X(Sendrecv_replace) X(Isendrecv) X(Isendrecv_replace) X(Send_init) X(Bsend_init) X(Ssend_init) \
    X(Rsend_init) X(Put) X(Rput) X(Get) X(Rget) X(Accumulate) X(Raccumulate)                       \
    X(Barrier) X(Ibarrier) X(Bcast) X(Ibcast) X(Gather) X(Igather) X(Gatherv) X(Igatherv)          \
    X(Scatter) X(Iscatter) X(Scatterv) X(Iscatterv) X(Allgather) X(Iallgather) X(Allgatherv)       \
    X(Iallgatherv) X(Alltoall) X(Ialltoall) X(Alltoallv) X(Ialltoallv) X(Alltoallw) X(Ialltoallw)  \
    X(Reduce) X(Ireduce) X(Allreduce) X(Iallreduce) X(Reduce_scatter) X(Ireduce_scatter)           \
    X(Reduce_scatter_block) X(Ireduce_scatter_block) X(Scan) X(Iscan) X(Exscan) X(Iexscan)         \
    X(Neighbor_allgather) X(Ineighbor_allgather) X(Neighbor_allgatherv) X(Ineighbor_allgatherv)    \
    X(Neighbor_alltoall) X(Ineighbor_alltoall) X(Neighbor_alltoallv) X(Ineighbor_alltoallv)        \
    X(Neighbor_alltoallw) X(Ineighbor_alltoallw)
#define ENUM(name) K_##name,
#define NAME(name) "MPI_" #name,
enum kind { KINDS(ENUM) NUMBER_OF_KINDS };
static const char *const names[] = {KINDS(NAME)};

enum { SIZES = 65, SLOTS = 1024 };

/* A preloaded library may use the block of a thread's variables that is there from the start. */
#define OF_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))

struct count {
    uint64_t number, bytes;
};

/* A communicator or a window: the ranks that messages go to, as ranks of MPI_COMM_WORLD (NULL: they
 * are the same), the own rank (-1: an intercommunicator), and the neighbours of its topology. */
struct group {
    int size, rank, *world, neighbours, *neighbour;
};

/* A persistent request, in a list of those with the same hash. */
struct request {
    MPI_Request request;
    enum kind kind;
    int to;
    uint64_t bytes;
    struct request *next;
};

static int on, concurrent, rank, ranks;
static const char *folder;
static uint64_t launch;
static struct count *sent, *got, outside, calls[NUMBER_OF_KINDS][SIZES];
static struct group of_world;
static struct request *requests[SLOTS];
static MPI_Group world_group;
static MPI_Comm world;
static MPI_Datatype no_type, byte;
static int of_communicators = MPI_KEYVAL_INVALID, of_windows = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned freed; /* so many groups: what threads remember of others is void */
OF_THREAD int hidden; /* calls that a Fortran binding makes */

/* Some hundred functions call these: inlined, they take seconds to compile. */
#define CALLED static __attribute__((noinline))

#define COUNTS(code) ((code) == MPI_SUCCESS && on && !hidden)

/* ---- counting -------------------------------------------------------------------------------- */

static void add(struct count *to, uint64_t bytes) {
    if (concurrent) {
        __atomic_fetch_add(&to->number, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&to->bytes, bytes, __ATOMIC_RELAXED);
    } else {
        to->number++;
        to->bytes += bytes;
    }
}

/* Counts a call in its bucket: 0, 1, 2, 3 to 4, 5 to 8, ... bytes. */
static inline void tally(enum kind kind, uint64_t bytes) {
    add(&calls[kind][bytes < 2 ? bytes : 64 - (unsigned)__builtin_clzll(bytes - 1) + 1], bytes);
}

CALLED void call(enum kind kind, uint64_t bytes) { tally(kind, bytes); }

/* Returns the bytes of so many elements. The size of the latest predefined type is remembered. */
CALLED uint64_t bytes_of(MPI_Count number, MPI_Datatype type) {
    OF_THREAD MPI_Datatype known;
    OF_THREAD MPI_Count known_size;
    OF_THREAD int is_known;
    MPI_Count size = 0;
    int integers, addresses, types, made = 0;
    if (is_known && type == known) return (uint64_t)(number * known_size);
    if (number <= 0 || type == no_type) return 0;
    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return 0;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &made);
    if (made == MPI_COMBINER_NAMED) known = type, known_size = size, is_known = 1;
    return (uint64_t)(number * size);
}

static void find_neighbours(MPI_Comm comm, struct group *group) {
    int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) PMPI_Cartdim_get(comm, &in), out = 2 * in;
    if (kind == MPI_GRAPH) PMPI_Graph_neighbors_count(comm, group->rank, &out);
    if (kind == MPI_DIST_GRAPH) PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    if (out <= 0 || !(group->neighbour = malloc((size_t)out * sizeof(int)))) return;
    group->neighbours = out;
    if (kind == MPI_CART)
        for (int i = 0; i < in; i++)
            PMPI_Cart_shift(comm, i, 1, &group->neighbour[2 * i], &group->neighbour[2 * i + 1]);
    if (kind == MPI_GRAPH) PMPI_Graph_neighbors(comm, group->rank, out, group->neighbour);
    if (kind == MPI_DIST_GRAPH) {
        int *from = malloc(((size_t)in + 1) * 2 * sizeof(int));
        int *weights = malloc(((size_t)out + 1) * sizeof(int));
        if (from && weights)
            PMPI_Dist_graph_neighbors(comm, in, from, from + in, out, group->neighbour, weights);
        else
            group->neighbours = 0;
        free(from), free(weights);
    }
}

/* Returns the group with its ranks of MPI_COMM_WORLD; frees the MPI_Group. NULL: no memory. */
static struct group *translated(MPI_Group members) {
    struct group *group = calloc(1, sizeof *group);
    int *own = NULL;
    if (group) PMPI_Group_size(members, &group->size);
    if (group) own = malloc(((size_t)group->size + 1) * sizeof(int));
    if (group) group->world = malloc(((size_t)group->size + 1) * sizeof(int));
    if (!own || !group->world) {
        if (group) free(group->world);
        free(own), free(group);
        group = NULL;
    } else {
        for (int i = 0; i < group->size; i++) own[i] = i;
        PMPI_Group_translate_ranks(members, group->size, own, world_group, group->world);
        free(own);
    }
    PMPI_Group_free(&members);
    return group;
}

static void drop(struct group *group) {
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
    if (group) free(group->world), free(group->neighbour), free(group);
}

static int communicator_is_freed(MPI_Comm comm, int key, void *group, void *extra) {
    (void)comm, (void)key, (void)extra;
    drop(group);
    return MPI_SUCCESS;
}

static int window_is_freed(MPI_Win window, int key, void *group, void *extra) {
    (void)window, (void)key, (void)extra;
    drop(group);
    return MPI_SUCCESS;
}

static int no_copy(MPI_Comm comm, int key, void *extra, void *from, void *to, int *copies) {
    (void)comm, (void)key, (void)extra, (void)from, (void)to;
    *copies = 0;
    return MPI_SUCCESS;
}

static int no_copy_of_window(MPI_Win window, int key, void *extra, void *from, void *to, int *copies) {
    (void)window, (void)key, (void)extra, (void)from, (void)to;
    *copies = 0;
    return MPI_SUCCESS;
}

static struct group *made_for(MPI_Comm comm) {
    MPI_Group members;
    int remote = 0;
    PMPI_Comm_test_inter(comm, &remote);
    if (remote)
        PMPI_Comm_remote_group(comm, &members);
    else
        PMPI_Comm_group(comm, &members);
    struct group *group = translated(members);
    if (!group) return NULL;
    PMPI_Comm_rank(comm, &group->rank);
    if (!remote) find_neighbours(comm, group);
    if (remote) group->rank = -1;
    PMPI_Comm_set_attr(comm, of_communicators, group);
    return group;
}

/* Returns the group of a communicator, made at its first use; NULL: no memory. */
CALLED struct group *group_of(MPI_Comm comm) {
    OF_THREAD MPI_Comm known;
    OF_THREAD struct group *known_group;
    OF_THREAD unsigned known_at;
    unsigned now = __atomic_load_n(&freed, __ATOMIC_ACQUIRE);
    struct group *group = NULL;
    int found = 0;
    if (comm == world) return &of_world;
    if (known_group && comm == known && known_at == now) return known_group;
    pthread_mutex_lock(&lock);
    PMPI_Comm_get_attr(comm, of_communicators, &group, &found);
    if (!found) group = made_for(comm);
    pthread_mutex_unlock(&lock);
    known = comm, known_group = group, known_at = now;
    return group;
}

static struct group *group_of_window(MPI_Win window) {
    struct group *group = NULL;
    MPI_Group members;
    int found = 0;
    pthread_mutex_lock(&lock);
    PMPI_Win_get_attr(window, of_windows, &group, &found);
    if (!found && PMPI_Win_get_group(window, &members) == MPI_SUCCESS) {
        group = translated(members);
        if (group) PMPI_Win_set_attr(window, of_windows, group);
    }
    pthread_mutex_unlock(&lock);
    return group;
}

/* Returns a rank of a group as rank of MPI_COMM_WORLD; -1: it is nobody (MPI_PROC_NULL); -2: it is
 * of another world. */
static inline int in_world(const struct group *group, int other) {
    if (!group || other < 0 || other >= group->size) return -1;
    int found = group->world ? group->world[other] : other;
    return found >= 0 && found < ranks ? found : -2;
}

static inline void pair(struct count *pairs, int other, uint64_t bytes) {
    if (other != -1) add(other < 0 ? &outside : &pairs[other], bytes);
}

CALLED void message(enum kind kind, MPI_Count n, MPI_Datatype type, int to, MPI_Comm comm) {
    int other = in_world(comm == world ? &of_world : group_of(comm), to);
    if (other == -1) return;
    uint64_t bytes = bytes_of(n, type);
    pair(sent, other, bytes);
    tally(kind, bytes);
}

CALLED void access_to(enum kind kind, MPI_Count n, MPI_Datatype type, int target, MPI_Win window) {
    int other = in_world(group_of_window(window), target);
    if (other == -1) return;
    uint64_t bytes = bytes_of(n, type);
    pair(kind == K_Get || kind == K_Rget ? got : sent, other, bytes);
    call(kind, bytes);
}

/* Counts a call with one root: what the root gives or gets itself, or what all others do. */
CALLED void rooted(enum kind kind, int root, MPI_Comm comm, uint64_t of_root, uint64_t of_others) {
    const struct group *group = group_of(comm);
    if (root != MPI_PROC_NULL) call(kind, group && root == group->rank ? of_root : of_others);
}

/* Returns the own number among those of all ranks; 0 in an intercommunicator. */
#define OWN(numbers, comm) \
    (group_of(comm) && group_of(comm)->rank >= 0 ? (numbers)[group_of(comm)->rank] : 0)

CALLED void all_to_all(enum kind kind, MPI_Count n, MPI_Datatype type, MPI_Comm comm) {
    const struct group *group = group_of(comm);
    uint64_t bytes = bytes_of(n, type);
    if (!group) return;
    call(kind, bytes * (uint64_t)group->size);
    for (int i = 0; i < group->size && group->size < ranks; i++)
        if (i != group->rank) pair(got, in_world(group, i), bytes);
}

/* Counts what arrives from each rank; NUMBER and TYPE are expressions of i. */
#define ALL_TO_ALL(kind, comm, NUMBER, TYPE)                         \
    do {                                                             \
        const struct group *group = group_of(comm);                  \
        uint64_t total = 0;                                          \
        for (int i = 0; group && i < group->size; i++) {             \
            uint64_t bytes = (NUMBER) ? bytes_of(NUMBER, TYPE) : 0;  \
            total += bytes;                                          \
            if (bytes && i != group->rank) pair(got, in_world(group, i), bytes); \
        }                                                            \
        if (group) call(kind, total);                                \
    } while (0)

#define NEIGHBOURS(kind, comm, NUMBER, TYPE)                                 \
    do {                                                                     \
        const struct group *group = group_of(comm);                          \
        uint64_t total = 0;                                                  \
        for (int i = 0; group && i < group->neighbours; i++) {               \
            int other = in_world(group, group->neighbour[i]);                \
            uint64_t bytes = other == -1 || !(NUMBER) ? 0 : bytes_of(NUMBER, TYPE); \
            total += bytes;                                                  \
            if (bytes) pair(sent, other, bytes);                             \
        }                                                                    \
        if (group) call(kind, total);                                        \
    } while (0)

/* Returns bytes of the numbers of all ranks, of one type. */
#define SUM(numbers, type, comm)                                              \
    __extension__({                                                           \
        const struct group *members = group_of(comm);                         \
        uint64_t sum = 0;                                                     \
        for (int i = 0; members && members->rank >= 0 && i < members->size; i++) \
            sum += (numbers)[i] ? bytes_of((numbers)[i], type) : 0;           \
        sum;                                                                  \
    })

/* ---- persistent requests ---------------------------------------------------------------------- */

static struct request **place_of(MPI_Request request) {
    struct request **at = &requests[((uintptr_t)request * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
    while (*at && (*at)->request != request) at = &(*at)->next;
    return at;
}

CALLED void persistent(enum kind kind, MPI_Count n, MPI_Datatype type, int to, MPI_Comm comm,
                       MPI_Request request) {
    struct request *made = malloc(sizeof *made);
    if (!made) return;
    *made = (struct request){request, kind, in_world(group_of(comm), to), bytes_of(n, type), NULL};
    pthread_mutex_lock(&lock);
    struct request **at = place_of(request);
    if (*at) made->next = (*at)->next, free(*at);
    *at = made;
    pthread_mutex_unlock(&lock);
}

CALLED void started(int number, const MPI_Request *list) {
    for (int i = 0; i < number; i++) {
        pthread_mutex_lock(&lock);
        const struct request *found = *place_of(list[i]);
        struct request copy = found ? *found : (struct request){.to = -1};
        pthread_mutex_unlock(&lock);
        if (copy.to == -1) continue;
        pair(sent, copy.to, copy.bytes);
        call(copy.kind, copy.bytes);
    }
}

CALLED void forget(MPI_Request request) {
    pthread_mutex_lock(&lock);
    struct request **at = place_of(request), *found = *at;
    if (found) *at = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
}

/* ---- begin and end ----------------------------------------------------------------------------- */

static FILE *opened(char *path, size_t size, const char *name) {
    int length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size ? fopen(path, "w") : NULL;
}

/* Closes a file, and gives it the first part of its name, if it could be written. */
static void replaced(FILE *file, const char *path, size_t length) {
    char whole[PATH_MAX];
    int failed = ferror(file);
    failed |= fclose(file);
    snprintf(whole, sizeof whole, "%.*s", (int)length, path);
    if (failed || rename(path, whole)) unlink(path);
}

/* Returns whether the program has an MPI whose constants are those that were compiled in. */
static int is_compiled_for(const char *version) {
#ifdef OPEN_MPI
    return strstr(version, "Open MPI") != NULL;
#else
    return strstr(version, "Open MPI") == NULL;
#endif
}

/* Open MPI's handles are addresses of its data, others are numbers. */
static void find_handles(void) {
#ifdef OPEN_MPI
    world = (MPI_Comm)dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    no_type = (MPI_Datatype)dlsym(RTLD_DEFAULT, "ompi_mpi_datatype_null");
    byte = (MPI_Datatype)dlsym(RTLD_DEFAULT, "ompi_mpi_byte");
#else
    world = MPI_COMM_WORLD, no_type = MPI_DATATYPE_NULL, byte = MPI_BYTE;
#endif
}

static int publish(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "/libmpi")) dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    return 0;
}

/* Lets the functions of an MPI be found that was loaded for a part of the program alone. */
static void find_mpi(void) {
    if (!dlsym(RTLD_DEFAULT, "PMPI_Init")) dl_iterate_phdr(publish, NULL);
}

static void begin(void) {
    char path[PATH_MAX], version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "", name[32];
    int length = 0, level = 0;
    FILE *file;
    folder = getenv("SEATRIAL_PATTERN");
    if (on || !folder || sent) return;
    PMPI_Get_library_version(version, &length);
    if (!is_compiled_for(version)) {
        snprintf(name, sizeof name, "other-mpi.%ld", (long)getpid());
        if ((file = opened(path, sizeof path, name))) {
            fprintf(file, "%s\n", version);
            replaced(file, path, strlen(path) - (strlen(name) - strlen("other-mpi")));
        }
        fprintf(stderr, "seatrial: the program has another MPI than mpicc of its toolchain\n");
        _exit(1);
    }
    find_handles();
    PMPI_Comm_rank(world, &rank);
    PMPI_Comm_size(world, &ranks);
    if (rank == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        launch = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        snprintf(name, sizeof name, "%016llx.begin", (unsigned long long)launch);
        if ((file = opened(path, sizeof path, name))) fprintf(file, "%d\n", ranks), fclose(file);
    }
    PMPI_Bcast(&launch, sizeof launch, byte, 0, world);
    PMPI_Comm_group(world, &world_group);
    PMPI_Comm_create_keyval(no_copy, communicator_is_freed, &of_communicators, NULL);
    PMPI_Win_create_keyval(no_copy_of_window, window_is_freed, &of_windows, NULL);
    PMPI_Query_thread(&level);
    concurrent = level == MPI_THREAD_MULTIPLE;
    of_world = (struct group){ranks, rank, NULL, 0, NULL};
    sent = calloc((size_t)ranks, sizeof *sent);
    got = calloc((size_t)ranks, sizeof *got);
    on = sent && got;
}

static void print_pairs(FILE *file, const struct count *pairs, int arrive) {
    for (int i = 0; i < ranks; i++)
        if (pairs[i].number)
            fprintf(file, "%d %d %llu %llu\n", arrive ? i : rank, arrive ? rank : i,
                    (unsigned long long)pairs[i].number, (unsigned long long)pairs[i].bytes);
}

static void print(FILE *file, const char *host) {
    int pairs = 0, lines = 0;
    for (int i = 0; i < ranks; i++) pairs += (sent[i].number > 0) + (got[i].number > 0);
    for (int k = 0; k < NUMBER_OF_KINDS; k++)
        for (int s = 0; s < SIZES; s++) lines += calls[k][s].number > 0;
    fprintf(file, "seatrial record 1\nrank %d\nranks %d\nhost %s\noutside %llu %llu\n", rank, ranks,
            host, (unsigned long long)outside.number, (unsigned long long)outside.bytes);
    fprintf(file, "pairs %d\ncalls %d\n", pairs, lines);
    print_pairs(file, sent, 0);
    print_pairs(file, got, 1);
    for (int k = 0; k < NUMBER_OF_KINDS; k++)
        for (int s = 0; s < SIZES; s++)
            if (calls[k][s].number)
                fprintf(file, "%s %llu %llu %llu\n", names[k],
                        s ? (unsigned long long)UINT64_C(1) << (s < 64 ? s - 1 : 62) : 0,
                        (unsigned long long)calls[k][s].number,
                        (unsigned long long)calls[k][s].bytes);
    fprintf(file, "end\n");
}

static void end(void) {
    char path[PATH_MAX], host[256] = "", name[64];
    if (!on) return;
    on = 0;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = 0;
    snprintf(name, sizeof name, "%016llx.%d.part", (unsigned long long)launch, rank);
    FILE *file = opened(path, sizeof path, name);
    if (!file) return;
    print(file, host);
    replaced(file, path, strlen(path) - strlen(".part"));
}

/* ---- the functions of MPI ------------------------------------------------------------------------ */

int MPI_Init(int *argc, char ***argv) {
    find_mpi();
    int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS && !hidden) begin();
    return code;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    find_mpi();
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS && !hidden) begin();
    return code;
}

int MPI_Finalize(void) {
    end();
    return PMPI_Finalize();
}

#define LIST(...) __VA_ARGS__
/* One function: its name, parameters, their names, and what is counted. */
#define WRAP(name, C, parameters, arguments, NOTE)        \
    int MPI_##name##C(LIST parameters) {                  \
        const enum kind kind = K_##name;                  \
        int code = PMPI_##name##C(LIST arguments);        \
        if (COUNTS(code)) NOTE;                           \
        return code;                                      \
    }
/* A function and its form that returns at once, with a request. */
#define BOTH(name, later, C, parameters, arguments, NOTE) \
    WRAP(name, C, parameters, arguments, NOTE)            \
    WRAP(later, C, (LIST parameters, MPI_Request *request), (LIST arguments, request), NOTE)

#define T MPI_Datatype
#define IN const void *
#define OUT void *
#define SEND(name, later, init, C, N)                                                              \
    BOTH(name, later, C, (IN b, N n, T t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c),     \
         message(kind, n, t, to, c))                                                               \
    WRAP(init, C, (IN b, N n, T t, int to, int tag, MPI_Comm c, MPI_Request *r),                   \
         (b, n, t, to, tag, c, r), persistent(kind, n, t, to, c, *r))

#define POINT_TO_POINT(C, N)                                                                       \
    SEND(Send, Isend, Send_init, C, N)                                                             \
    SEND(Bsend, Ibsend, Bsend_init, C, N)                                                          \
    SEND(Ssend, Issend, Ssend_init, C, N)                                                          \
    SEND(Rsend, Irsend, Rsend_init, C, N)                                                          \
    WRAP(Sendrecv, C,                                                                              \
         (IN s, N sn, T st, int to, int tag, OUT r, N rn, T rt, int from, int rtag, MPI_Comm c,    \
          MPI_Status *status),                                                                     \
         (s, sn, st, to, tag, r, rn, rt, from, rtag, c, status), message(kind, sn, st, to, c))     \
    WRAP(Sendrecv_replace, C,                                                                      \
         (OUT b, N n, T t, int to, int tag, int from, int rtag, MPI_Comm c, MPI_Status *status),   \
         (b, n, t, to, tag, from, rtag, c, status), message(kind, n, t, to, c))

#define ONE_SIDED(C, N)                                                                            \
    BOTH(Put, Rput, C, (IN b, N n, T t, int to, MPI_Aint at, N tn, T tt, MPI_Win w),               \
         (b, n, t, to, at, tn, tt, w), access_to(kind, n, t, to, w))                               \
    BOTH(Get, Rget, C, (OUT b, N n, T t, int of, MPI_Aint at, N tn, T tt, MPI_Win w),              \
         (b, n, t, of, at, tn, tt, w), access_to(kind, n, t, of, w))                               \
    BOTH(Accumulate, Raccumulate, C,                                                               \
         (IN b, N n, T t, int to, MPI_Aint at, N tn, T tt, MPI_Op op, MPI_Win w),                  \
         (b, n, t, to, at, tn, tt, op, w), access_to(kind, n, t, to, w))

#define ROOTED(C, N, D)                                                                            \
    BOTH(Bcast, Ibcast, C, (OUT b, N n, T t, int root, MPI_Comm c), (b, n, t, root, c),            \
         call(kind, bytes_of(n, t)))                                                               \
    BOTH(Gather, Igather, C,                                                                       \
         (IN s, N sn, T st, OUT r, N rn, T rt, int root, MPI_Comm c),                              \
         (s, sn, st, r, rn, rt, root, c), GATHERED(rn, rt))                                        \
    BOTH(Gatherv, Igatherv, C,                                                                     \
         (IN s, N sn, T st, OUT r, const N rn[], const D rd[], T rt, int root, MPI_Comm c),        \
         (s, sn, st, r, rn, rd, rt, root, c), GATHERED(OWN(rn, c), rt))                            \
    BOTH(Scatter, Iscatter, C,                                                                     \
         (IN s, N sn, T st, OUT r, N rn, T rt, int root, MPI_Comm c),                              \
         (s, sn, st, r, rn, rt, root, c), SCATTERED(sn, st))                                       \
    BOTH(Scatterv, Iscatterv, C,                                                                   \
         (IN s, const N sn[], const D sd[], T st, OUT r, N rn, T rt, int root, MPI_Comm c),        \
         (s, sn, sd, st, r, rn, rt, root, c), SCATTERED(OWN(sn, c), st))                           \
    BOTH(Reduce, Ireduce, C, (IN s, OUT r, N n, T t, MPI_Op op, int root, MPI_Comm c),             \
         (s, r, n, t, op, root, c), call(kind, bytes_of(n, t)))
/* Numbers that only the root has are read at the root alone. */
#define IS_ROOT(root, c) (group_of(c) && (root) == group_of(c)->rank)
#define GATHERED(N_ROOT, T_ROOT) \
    rooted(kind, root, c, IS_ROOT(root, c) ? bytes_of(N_ROOT, T_ROOT) : 0, \
           IS_ROOT(root, c) || root == MPI_ROOT ? 0 : bytes_of(sn, st))
#define SCATTERED(N_ROOT, T_ROOT) \
    rooted(kind, root, c, IS_ROOT(root, c) ? bytes_of(N_ROOT, T_ROOT) : 0, \
           IS_ROOT(root, c) || root == MPI_ROOT ? 0 : bytes_of(rn, rt))

#define TO_ALL(C, N, D)                                                                            \
    BOTH(Allgather, Iallgather, C, (IN s, N sn, T st, OUT r, N rn, T rt, MPI_Comm c),              \
         (s, sn, st, r, rn, rt, c), call(kind, bytes_of(rn, rt)))                                  \
    BOTH(Allgatherv, Iallgatherv, C,                                                               \
         (IN s, N sn, T st, OUT r, const N rn[], const D rd[], T rt, MPI_Comm c),                  \
         (s, sn, st, r, rn, rd, rt, c), call(kind, bytes_of(OWN(rn, c), rt)))                      \
    BOTH(Alltoall, Ialltoall, C, (IN s, N sn, T st, OUT r, N rn, T rt, MPI_Comm c),                \
         (s, sn, st, r, rn, rt, c), all_to_all(kind, rn, rt, c))                                   \
    BOTH(Alltoallv, Ialltoallv, C,                                                                 \
         (IN s, const N sn[], const D sd[], T st, OUT r, const N rn[], const D rd[], T rt,         \
          MPI_Comm c),                                                                             \
         (s, sn, sd, st, r, rn, rd, rt, c), ALL_TO_ALL(kind, c, rn[i], rt))                        \
    BOTH(Alltoallw, Ialltoallw, C,                                                                 \
         (IN s, const N sn[], const D sd[], const T st[], OUT r, const N rn[], const D rd[],       \
          const T rt[], MPI_Comm c),                                                               \
         (s, sn, sd, st, r, rn, rd, rt, c), ALL_TO_ALL(kind, c, rn[i], rt[i]))                     \
    BOTH(Allreduce, Iallreduce, C, (IN s, OUT r, N n, T t, MPI_Op op, MPI_Comm c),                 \
         (s, r, n, t, op, c), call(kind, bytes_of(n, t)))                                          \
    BOTH(Scan, Iscan, C, (IN s, OUT r, N n, T t, MPI_Op op, MPI_Comm c), (s, r, n, t, op, c),      \
         call(kind, bytes_of(n, t)))                                                               \
    BOTH(Exscan, Iexscan, C, (IN s, OUT r, N n, T t, MPI_Op op, MPI_Comm c), (s, r, n, t, op, c),  \
         call(kind, bytes_of(n, t)))                                                               \
    BOTH(Reduce_scatter, Ireduce_scatter, C,                                                       \
         (IN s, OUT r, const N n[], T t, MPI_Op op, MPI_Comm c), (s, r, n, t, op, c),              \
         call(kind, SUM(n, t, c)))                                                                 \
    BOTH(Reduce_scatter_block, Ireduce_scatter_block, C,                                           \
         (IN s, OUT r, N n, T t, MPI_Op op, MPI_Comm c), (s, r, n, t, op, c),                      \
         call(kind, bytes_of(n, t) * (uint64_t)(group_of(c) ? group_of(c)->size : 0)))

#define TO_NEIGHBOURS(C, N, D)                                                                     \
    BOTH(Neighbor_allgather, Ineighbor_allgather, C,                                               \
         (IN s, N sn, T st, OUT r, N rn, T rt, MPI_Comm c), (s, sn, st, r, rn, rt, c),             \
         NEIGHBOURS(kind, c, sn, st))                                                              \
    BOTH(Neighbor_allgatherv, Ineighbor_allgatherv, C,                                             \
         (IN s, N sn, T st, OUT r, const N rn[], const D rd[], T rt, MPI_Comm c),                  \
         (s, sn, st, r, rn, rd, rt, c), NEIGHBOURS(kind, c, sn, st))                               \
    BOTH(Neighbor_alltoall, Ineighbor_alltoall, C,                                                 \
         (IN s, N sn, T st, OUT r, N rn, T rt, MPI_Comm c), (s, sn, st, r, rn, rt, c),             \
         NEIGHBOURS(kind, c, sn, st))                                                              \
    BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, C,                                               \
         (IN s, const N sn[], const D sd[], T st, OUT r, const N rn[], const D rd[], T rt,         \
          MPI_Comm c),                                                                             \
         (s, sn, sd, st, r, rn, rd, rt, c), NEIGHBOURS(kind, c, sn[i], st))                        \
    BOTH(Neighbor_alltoallw, Ineighbor_alltoallw, C,                                               \
         (IN s, const N sn[], const MPI_Aint sd[], const T st[], OUT r, const N rn[],              \
          const MPI_Aint rd[], const T rt[], MPI_Comm c),                                          \
         (s, sn, sd, st, r, rn, rd, rt, c), NEIGHBOURS(kind, c, sn[i], st[i]))

POINT_TO_POINT(, int)
ONE_SIDED(, int)
ROOTED(, int, int)
TO_ALL(, int, int)
TO_NEIGHBOURS(, int, int)
BOTH(Barrier, Ibarrier, , (MPI_Comm c), (c), call(kind, 0))

#if MPI_VERSION >= 4
POINT_TO_POINT(_c, MPI_Count)
ONE_SIDED(_c, MPI_Count)
ROOTED(_c, MPI_Count, MPI_Aint)
TO_ALL(_c, MPI_Count, MPI_Aint)
TO_NEIGHBOURS(_c, MPI_Count, MPI_Aint)
WRAP(Isendrecv, ,
     (IN s, int sn, T st, int to, int tag, OUT r, int rn, T rt, int from, int rtag, MPI_Comm c,
      MPI_Request *q),
     (s, sn, st, to, tag, r, rn, rt, from, rtag, c, q), message(kind, sn, st, to, c))
WRAP(Isendrecv_replace, ,
     (OUT b, int n, T t, int to, int tag, int from, int rtag, MPI_Comm c, MPI_Request *q),
     (b, n, t, to, tag, from, rtag, c, q), message(kind, n, t, to, c))
#endif

int MPI_Start(MPI_Request *request) {
    int code = PMPI_Start(request);
    if (COUNTS(code)) started(1, request);
    return code;
}

int MPI_Startall(int number, MPI_Request list[]) {
    int code = PMPI_Startall(number, list);
    if (COUNTS(code)) started(number, list);
    return code;
}

int MPI_Request_free(MPI_Request *request) {
    if (on && !hidden) forget(*request);
    return PMPI_Request_free(request);
}

/* ---- the subroutines of Fortran ------------------------------------------------------------------
 *
 * Symbols, as of gfortran: mpi_send_ (mpif.h, `use mpi`), mpi_send_f08_ (`use mpi_f08` of Open MPI),
 * mpi_send_f08ts_ (of MPICH). All arguments are addresses; handles are
 * integers, or types of one integer. Of mpi_f08 the address of the error may be NULL.
 */

static void *next_of(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) fprintf(stderr, "seatrial: the MPI of the program has no %s\n", name), abort();
    return found;
}

#define F MPI_Fint
#define A MPI_Aint
#define TYPE(t) PMPI_Type_f2c(*(t))
#define FORTRAN(S, low, name, parameters, arguments, NOTE) \
    FORTRAN_AS(S, low, K_##name, parameters, arguments, NOTE)
#define FORTRAN_AS(S, low, KIND, parameters, arguments, NOTE)                  \
    void mpi_##low##S(LIST parameters, F *error);                              \
    void mpi_##low##S(LIST parameters, F *error) {                             \
        static void (*next)(LIST parameters, F *error);                        \
        const enum kind kind = KIND;                                           \
        if (!next) *(void **)&next = next_of("mpi_" #low #S);                  \
        hidden++;                                                              \
        next(LIST arguments, error);                                           \
        hidden--;                                                              \
        if (COUNTS(error ? *error : MPI_SUCCESS)) NOTE;                        \
    }
#define FORTRAN_BOTH(S, low, name, parameters, arguments, NOTE)                \
    FORTRAN_AS(S, low, K_##name, parameters, arguments, NOTE)                  \
    FORTRAN_AS(S, i##low, K_##name + 1, (LIST parameters, F *request), (LIST arguments, request), NOTE)
#define COMM(NOTE)                            \
    do {                                      \
        MPI_Comm c = PMPI_Comm_f2c(*pc);      \
        NOTE;                                 \
    } while (0)
#define ROOTED_COMM(NOTE)                                    \
    do {                                                     \
        MPI_Comm c = PMPI_Comm_f2c(*pc);                     \
        MPI_Datatype st = TYPE(pst);                         \
        MPI_Datatype rt = TYPE(prt);                         \
        int root = (int)*proot;                              \
        NOTE;                                                \
    } while (0)

#define FORTRAN_SEND(S, N, low, name, init)                                                        \
    FORTRAN_BOTH(S, low, name, (void *b, N *n, F *t, F *to, F *tag, F *pc), (b, n, t, to, tag, pc), \
                 COMM(message(kind, *n, TYPE(t), (int)*to, c)))                                    \
    FORTRAN(S, low##_init, init, (void *b, N *n, F *t, F *to, F *tag, F *pc, F *r),                \
            (b, n, t, to, tag, pc, r),                                                             \
            COMM(persistent(kind, *n, TYPE(t), (int)*to, c, PMPI_Request_f2c(*r))))

#define FORTRAN_MESSAGES(S, N)                                                                     \
    FORTRAN_SEND(S, N, send, Send, Send_init)                                                      \
    FORTRAN_SEND(S, N, bsend, Bsend, Bsend_init)                                                   \
    FORTRAN_SEND(S, N, ssend, Ssend, Ssend_init)                                                   \
    FORTRAN_SEND(S, N, rsend, Rsend, Rsend_init)                                                   \
    FORTRAN(S, sendrecv, Sendrecv,                                                                 \
            (void *s, N *n, F *t, F *to, F *tag, void *r, N *rn, F *rt, F *from, F *rtag, F *pc,   \
             F *status),                                                                           \
            (s, n, t, to, tag, r, rn, rt, from, rtag, pc, status),                                 \
            COMM(message(kind, *n, TYPE(t), (int)*to, c)))                                         \
    FORTRAN(S, sendrecv_replace, Sendrecv_replace,                                                 \
            (void *b, N *n, F *t, F *to, F *tag, F *from, F *rtag, F *pc, F *status),              \
            (b, n, t, to, tag, from, rtag, pc, status),                                            \
            COMM(message(kind, *n, TYPE(t), (int)*to, c)))                                         \
    FORTRAN(S, put, Put, (void *b, N *n, F *t, F *to, A *at, N *tn, F *tt, F *w),                  \
            (b, n, t, to, at, tn, tt, w),                                                          \
            access_to(kind, *n, TYPE(t), (int)*to, PMPI_Win_f2c(*w)))                              \
    FORTRAN(S, get, Get, (void *b, N *n, F *t, F *of, A *at, N *tn, F *tt, F *w),                  \
            (b, n, t, of, at, tn, tt, w),                                                          \
            access_to(kind, *n, TYPE(t), (int)*of, PMPI_Win_f2c(*w)))                              \
    FORTRAN(S, accumulate, Accumulate,                                                             \
            (void *b, N *n, F *t, F *to, A *at, N *tn, F *tt, F *op, F *w),                        \
            (b, n, t, to, at, tn, tt, op, w),                                                      \
            access_to(kind, *n, TYPE(t), (int)*to, PMPI_Win_f2c(*w)))

#define FORTRAN_COLLECTIVES(S, N, D)                                                               \
    FORTRAN_BOTH(S, bcast, Bcast, (void *b, N *n, F *t, F *root, F *pc), (b, n, t, root, pc),      \
                 call(kind, bytes_of(*n, TYPE(t))))                                                \
    FORTRAN_BOTH(S, gather, Gather,                                                                \
                 (void *s, N *psn, F *pst, void *r, N *prn, F *prt, F *proot, F *pc),              \
                 (s, psn, pst, r, prn, prt, proot, pc),                                            \
                 ROOTED_COMM(N sn = *psn; GATHERED(*prn, rt)))                                     \
    FORTRAN_BOTH(S, gatherv, Gatherv,                                                              \
                 (void *s, N *psn, F *pst, void *r, N *prn, D *rd, F *prt, F *proot, F *pc),       \
                 (s, psn, pst, r, prn, rd, prt, proot, pc),                                        \
                 ROOTED_COMM(N sn = *psn; GATHERED(OWN(prn, c), rt)))                              \
    FORTRAN_BOTH(S, scatter, Scatter,                                                              \
                 (void *s, N *psn, F *pst, void *r, N *prn, F *prt, F *proot, F *pc),              \
                 (s, psn, pst, r, prn, prt, proot, pc),                                            \
                 ROOTED_COMM(N rn = *prn; SCATTERED(*psn, st)))                                    \
    FORTRAN_BOTH(S, scatterv, Scatterv,                                                            \
                 (void *s, N *psn, D *sd, F *pst, void *r, N *prn, F *prt, F *proot, F *pc),       \
                 (s, psn, sd, pst, r, prn, prt, proot, pc),                                        \
                 ROOTED_COMM(N rn = *prn; SCATTERED(OWN(psn, c), st)))                             \
    FORTRAN_BOTH(S, reduce, Reduce, (void *s, void *r, N *n, F *t, F *op, F *root, F *pc),         \
                 (s, r, n, t, op, root, pc), call(kind, bytes_of(*n, TYPE(t))))                    \
    FORTRAN_BOTH(S, allreduce, Allreduce, (void *s, void *r, N *n, F *t, F *op, F *pc),            \
                 (s, r, n, t, op, pc), call(kind, bytes_of(*n, TYPE(t))))                          \
    FORTRAN_BOTH(S, scan, Scan, (void *s, void *r, N *n, F *t, F *op, F *pc),                      \
                 (s, r, n, t, op, pc), call(kind, bytes_of(*n, TYPE(t))))                          \
    FORTRAN_BOTH(S, exscan, Exscan, (void *s, void *r, N *n, F *t, F *op, F *pc),                  \
                 (s, r, n, t, op, pc), call(kind, bytes_of(*n, TYPE(t))))                          \
    FORTRAN_BOTH(S, reduce_scatter, Reduce_scatter,                                                \
                 (void *s, void *r, N *n, F *t, F *op, F *pc), (s, r, n, t, op, pc),               \
                 COMM(call(kind, SUM(n, TYPE(t), c))))                                             \
    FORTRAN_BOTH(S, allgather, Allgather,                                                          \
                 (void *s, N *sn, F *st, void *r, N *rn, F *rt, F *pc),                            \
                 (s, sn, st, r, rn, rt, pc), call(kind, bytes_of(*rn, TYPE(rt))))                  \
    FORTRAN_BOTH(S, allgatherv, Allgatherv,                                                        \
                 (void *s, N *sn, F *st, void *r, N *rn, D *rd, F *rt, F *pc),                     \
                 (s, sn, st, r, rn, rd, rt, pc),                                                   \
                 COMM(call(kind, bytes_of(OWN(rn, c), TYPE(rt)))))                                 \
    FORTRAN_BOTH(S, alltoall, Alltoall,                                                            \
                 (void *s, N *sn, F *st, void *r, N *rn, F *rt, F *pc),                            \
                 (s, sn, st, r, rn, rt, pc), COMM(all_to_all(kind, *rn, TYPE(rt), c)))             \
    FORTRAN_BOTH(S, alltoallv, Alltoallv,                                                          \
                 (void *s, N *sn, D *sd, F *st, void *r, N *rn, D *rd, F *rt, F *pc),              \
                 (s, sn, sd, st, r, rn, rd, rt, pc),                                               \
                 COMM(ALL_TO_ALL(kind, c, rn[i], TYPE(rt))))                                       \
    FORTRAN_BOTH(S, alltoallw, Alltoallw,                                                          \
                 (void *s, N *sn, D *sd, F *st, void *r, N *rn, D *rd, F *rt, F *pc),              \
                 (s, sn, sd, st, r, rn, rd, rt, pc),                                               \
                 COMM(ALL_TO_ALL(kind, c, rn[i], TYPE(rt + i))))                                   \
    FORTRAN_BOTH(S, neighbor_alltoall, Neighbor_alltoall,                                          \
                 (void *s, N *sn, F *st, void *r, N *rn, F *rt, F *pc),                            \
                 (s, sn, st, r, rn, rt, pc), COMM(NEIGHBOURS(kind, c, *sn, TYPE(st))))             \
    FORTRAN_BOTH(S, neighbor_alltoallv, Neighbor_alltoallv,                                        \
                 (void *s, N *sn, D *sd, F *st, void *r, N *rn, D *rd, F *rt, F *pc),              \
                 (s, sn, sd, st, r, rn, rd, rt, pc), COMM(NEIGHBOURS(kind, c, sn[i], TYPE(st))))   \
    FORTRAN_BOTH(S, neighbor_allgather, Neighbor_allgather,                                        \
                 (void *s, N *sn, F *st, void *r, N *rn, F *rt, F *pc),                            \
                 (s, sn, st, r, rn, rt, pc), COMM(NEIGHBOURS(kind, c, *sn, TYPE(st))))

#define FORTRAN_BEGIN_AND_END(S)                                                                   \
    void mpi_init##S(F *error);                                                                    \
    void mpi_init##S(F *error) {                                                                   \
        hidden++;                                                                                  \
        ((void (*)(F *))next_of("mpi_init" #S))(error);                                            \
        hidden--;                                                                                  \
        if (!error || *error == MPI_SUCCESS) begin();                                              \
    }                                                                                              \
    void mpi_init_thread##S(F *required, F *provided, F *error);                                   \
    void mpi_init_thread##S(F *required, F *provided, F *error) {                                  \
        hidden++;                                                                                  \
        ((void (*)(F *, F *, F *))next_of("mpi_init_thread" #S))(required, provided, error);       \
        hidden--;                                                                                  \
        if (!error || *error == MPI_SUCCESS) begin();                                              \
    }                                                                                              \
    void mpi_finalize##S(F *error);                                                                \
    void mpi_finalize##S(F *error) {                                                               \
        end();                                                                                     \
        ((void (*)(F *))next_of("mpi_finalize" #S))(error);                                        \
    }                                                                                              \
    void mpi_request_free##S(F *request, F *error);                                                \
    void mpi_request_free##S(F *request, F *error) {                                               \
        if (on) forget(PMPI_Request_f2c(*request));                                                \
        hidden++;                                                                                  \
        ((void (*)(F *, F *))next_of("mpi_request_free" #S))(request, error);                      \
        hidden--;                                                                                  \
    }                                                                                              \
    FORTRAN(S, start, Send_init, (F *request), (request),                                          \
            started(kind == K_Send_init, &(MPI_Request){PMPI_Request_f2c(*request)}))              \
    FORTRAN(S, startall, Send_init, (F *n, F *list), (n, list),                                    \
            for (F i = 0; kind == K_Send_init && i < *n; i++)                                      \
                started(1, &(MPI_Request){PMPI_Request_f2c(list[i])}))                             \
    FORTRAN_BOTH(S, barrier, Barrier, (F *pc), (pc), call(kind, 0))

FORTRAN_BEGIN_AND_END(_)
FORTRAN_BEGIN_AND_END(_f08_)
FORTRAN_MESSAGES(_, F)
FORTRAN_COLLECTIVES(_, F, F)
#ifdef OPEN_MPI
FORTRAN_MESSAGES(_f08_, F)
FORTRAN_COLLECTIVES(_f08_, F, F)
#else
FORTRAN_MESSAGES(_f08ts_, F)
FORTRAN_COLLECTIVES(_f08ts_, F, F)
#endif
