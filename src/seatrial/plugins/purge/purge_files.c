/* Finds the files below a folder, and removes those of a plan: what `seatrial purge` does to a file
 * system. It decides nothing: Python says which entries are taken.
 *
 *   purge_files walk  ROOT THREADS OPEN                  blocks to stdout, the last one is the end
 *   purge_files ACT   ROOT THREADS OPEN ASIDE ATIME DEPTH ERRORS
 *                                                        blocks from stdin, an answer each to stdout
 *
 * ACT     remove: unlink; aside: move below ASIDE; undo: move back from there; expire: remove there
 * ROOT    the number of an open descriptor of the root; ASIDE likewise, -1 for none
 * OPEN    beneath: openat2 where the kernel has it; steps: always the walk of openat
 * ATIME   1: an entry that was read after the plan stays
 * DEPTH   folders that become empty are removed, from this depth below the root on; 0: none
 * ERRORS  after more errors than this nothing more is tried
 *
 * A block is, in the byte order of the host, as plan_file.py reads it:
 *   struct head, folders * struct folder, entries * struct entry, text_bytes of text
 * Paths (below the root, "" for the root) and names are slices of the text, without an end mark.
 * Text is padded to 8 bytes. Blocks of the magic SKIP hold inodes (entries * uint64) of open files,
 * which stay. The block END of a walk has text alone: lines of NAME NUMBER, and of
 * "error ERRNO PATH" for the first errors, where the path has no byte below a space.
 *
 * An answer:
 *   "done NUMBER ENTRIES FREED ERRORS FOLDERS FOLDER_BYTES\n", ENTRIES letters, ERRORS times
 *   "INDEX ERRNO\n", and FOLDER_BYTES of removed paths with a NUL behind each.
 * Letters: r removed, a aside, x aside though it is another file, u back at its place, o its name is
 * taken, c changed since the plan, g gone, k kept as it is open, e error, n not tried, - not taken.
 *
 * Memory. Folders that wait are bounded: beyond, a thread reads the folder itself, holding those
 * above it open. Only folders more than DEEPEST levels below one of these wait without a bound.
 *
 * Safety. A folder is opened from the root's descriptor by openat2 with RESOLVE_BENEATH,
 * RESOLVE_NO_SYMLINKS and RESOLVE_NO_XDEV; without openat2 one component after the other with
 * O_NOFOLLOW, comparing the device. The entry is compared with the plan by statx and removed by
 * unlinkat, both with the folder's descriptor. So whatever is swapped meanwhile, only a name in that
 * very folder can go: one that its owner could have removed himself. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- the form of blocks ---- */

enum { BLOCK = 0x4b4c4253, SKIP = 0x50494b53, END = 0x20444e45 };
enum { REGULAR = 0, LINK = 1, OTHER = 3 };

struct head {
    uint32_t magic, root, folders, entries;
    uint64_t text_bytes, number;
};

struct folder {
    uint64_t inode;
    uint32_t mode, uid, gid, path_bytes;
    uint64_t path_at;
};

struct entry {
    uint64_t inode;
    int64_t size, bytes, atime, mtime, ctime;
    uint32_t uid, gid, links, folder, name_at;
    uint16_t name_bytes;
    uint8_t kind, take;
    int32_t rule;
    uint32_t spare;
};

enum {
    MOST_ENTRIES = 8192, /* of a block */
    MOST_TEXT = 4 << 20,
    MOST_FOLDERS_IN = 1 << 20, /* of a block that is read */
    MOST_TEXT_IN = 1 << 28,
    MOST_THREADS = 64,
};

static void *grown(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (!memory) {
        fprintf(stderr, "no memory\n");
        exit(3);
    }
    return memory;
}

/* Write all of it, or end: without a reader nothing more is to be done. */
static void write_all(const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        ssize_t done = write(STDOUT_FILENO, at, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            exit(4);
        at += done;
        bytes -= (size_t)done;
    }
}

/* Read all of it. Returns false at the end of the input before the first byte. */
static bool read_all(void *data, size_t bytes) {
    char *at = data;
    size_t left = bytes;
    while (left) {
        ssize_t done = read(STDIN_FILENO, at, left);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0 && left == bytes)
            return false;
        if (done <= 0)
            exit(4);
        at += done;
        left -= (size_t)done;
    }
    return true;
}

/* ---- folders, opened beneath the root ---- */

#define ASIDE_NAME ".seatrial-aside" /* below the root: what was moved aside; it is not walked */

static int root;
static dev_t device; /* of the root */
static bool by_steps;

struct how { /* struct open_how of <linux/openat2.h>, which old hosts do not have */
    uint64_t flags, mode, resolve;
};

enum { NO_XDEV = 0x01, NO_SYMLINKS = 0x04, BENEATH = 0x08, OPENAT2 = 437, RETRIES = 1000 };

static bool is_step(const char *name, size_t bytes) {
    return bytes && !(bytes == 1 && name[0] == '.') &&
           !(bytes == 2 && name[0] == '.' && name[1] == '.') && !memchr(name, 0, bytes);
}

/* Whether a path is a list of plain names: what a damaged plan says is not followed. */
static bool is_plain(const char *path, size_t bytes) {
    const char *end = path + bytes;
    size_t own = sizeof ASIDE_NAME - 1;
    if (bytes >= own && !memcmp(path, ASIDE_NAME, own) && (bytes == own || path[own] == '/'))
        return false;
    while (path < end) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        if (!is_step(path, (size_t)((slash ? slash : end) - path)))
            return false;
        path = slash ? slash + 1 : end;
        if (slash && path == end)
            return false;
    }
    return true;
}

static int open_beneath(int at, const char *path, int flags) {
    struct how how = {(uint64_t)(flags | O_NOFOLLOW), 0, BENEATH | NO_SYMLINKS | NO_XDEV};
    for (int attempt = 0; attempt < RETRIES; attempt++) {
        long opened = syscall(OPENAT2, at, path, &how, sizeof how);
        if (opened >= 0 || errno != EAGAIN) /* EAGAIN: a rename elsewhere came between */
            return (int)opened;
    }
    return -1;
}

static int64_t nanoseconds(struct statx_timestamp time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int status_of(int at, const char *name, int flags, struct statx *about) {
    return statx(at, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, about);
}

/* Whether it is on the root's device and no other mount begins there. */
static bool is_here(const struct statx *about) {
    return makedev(about->stx_dev_major, about->stx_dev_minor) == device &&
           !(about->stx_attributes_mask & about->stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Open one component without following it, on the root's device alone. */
static int open_step(int at, const char *name, int flags) {
    int opened = openat(at, name, flags | O_NOFOLLOW);
    struct statx about;
    if (opened >= 0 && (status_of(opened, "", AT_EMPTY_PATH, &about) || !is_here(&about))) {
        close(opened);
        errno = EXDEV;
        return -1;
    }
    return opened;
}

/* The length of the first piece of a path. */
static size_t piece_of(const char *path, size_t bytes) {
    if (!by_steps && bytes < PATH_MAX)
        return bytes;
    const char *last = NULL;
    for (const char *at = path; at < path + bytes && at < path + PATH_MAX; at++)
        if (*at == '/') {
            last = at;
            if (by_steps)
                break;
        }
    return last ? (size_t)(last - path) : bytes;
}

/* Open a folder by its path below an open one. Returns -1 with errno. */
static int open_folder(int from, const char *path, size_t bytes, int flags) {
    char piece[PATH_MAX + 1];
    int at = from;
    flags |= O_DIRECTORY | O_CLOEXEC;
    if (!is_plain(path, bytes)) {
        errno = EINVAL;
        return -1;
    }
    if (!bytes)
        return openat(from, ".", flags);
    while (bytes && at >= 0) {
        size_t length = piece_of(path, bytes);
        int next = -1;
        errno = ENAMETOOLONG;
        if (length <= PATH_MAX) {
            memcpy(piece, path, length);
            piece[length] = 0;
            next = by_steps ? open_step(at, piece, flags) : open_beneath(at, piece, flags);
        }
        int reason = errno;
        if (at != from)
            close(at);
        errno = reason;
        at = next;
        length += length < bytes; /* its slash */
        path += length;
        bytes -= length;
    }
    return at;
}

/* Whether this kernel, and what filters its calls, has no openat2. */
static bool is_without_openat2(void) {
    int opened = open_beneath(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0)
        close(opened);
    return opened < 0;
}

/* ---- walk: folders that wait ---- */

struct waiting {
    struct waiting *next;
    size_t bytes;
    char path[];
};

enum { MOST_WAITING = 4096, DEEPEST = 48, DENTS = 32768, ERRORS_TOLD = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct waiting *first_waiting;
static int waiting_count, busy;

/* Let another thread read this folder. Returns false where enough of them wait, unless it must. */
static bool hand_over(const char *path, size_t bytes, bool must) {
    pthread_mutex_lock(&lock);
    bool taken = must || waiting_count < MOST_WAITING;
    if (taken) {
        struct waiting *item = grown(NULL, sizeof *item + bytes + 1);
        memcpy(item->path, path, bytes);
        item->bytes = bytes;
        item->next = first_waiting;
        first_waiting = item;
        waiting_count++;
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

/* Return a folder to read; NULL when all are read. */
static struct waiting *next_folder(void) {
    pthread_mutex_lock(&lock);
    while (!first_waiting && busy)
        pthread_cond_wait(&changed, &lock);
    struct waiting *item = first_waiting;
    if (item) {
        first_waiting = item->next;
        waiting_count--;
        busy++;
    } else {
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return item;
}

static void folder_is_read(void) {
    pthread_mutex_lock(&lock);
    busy--;
    if (!busy && !first_waiting)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- walk: what is counted and told at the end ---- */

static atomic_llong folders_read, other_devices, vanished, errors;
static char told[ERRORS_TOLD * (PATH_MAX + 40)];
static size_t told_bytes;
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static void tell_error(int reason, const char *path, size_t bytes) {
    if (atomic_fetch_add(&errors, 1) >= ERRORS_TOLD)
        return;
    pthread_mutex_lock(&telling);
    if (bytes > PATH_MAX)
        bytes = PATH_MAX;
    told_bytes += (size_t)sprintf(told + told_bytes, "error %d ", reason);
    for (size_t i = 0; i < bytes; i++)
        told[told_bytes++] = (unsigned char)path[i] < ' ' ? '?' : path[i];
    told[told_bytes++] = '\n';
    pthread_mutex_unlock(&telling);
}

/* Count what could not be read; what is gone meanwhile, or is elsewhere, is no error. */
static void count_failure(int reason, const char *path, size_t bytes) {
    if (reason == ENOENT)
        vanished++;
    else if (reason == EXDEV)
        other_devices++;
    else
        tell_error(reason, path, bytes);
}

/* ---- walk: blocks ---- */

struct walker {
    struct folder folders[MOST_ENTRIES];
    struct entry entries[MOST_ENTRIES];
    uint32_t folder_count, entry_count;
    uint64_t block; /* how many were written before it */
    char *text, *path;
    size_t text_bytes, text_room, path_bytes, path_room;
};

static void write_block(struct walker *walker) {
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    while (walker->text_bytes % 8)
        walker->text[walker->text_bytes++] = 0;
    struct head head = {BLOCK, 0, walker->folder_count, walker->entry_count, walker->text_bytes, 0};
    pthread_mutex_lock(&writing);
    write_all(&head, sizeof head);
    write_all(walker->folders, walker->folder_count * sizeof(struct folder));
    write_all(walker->entries, walker->entry_count * sizeof(struct entry));
    write_all(walker->text, walker->text_bytes);
    pthread_mutex_unlock(&writing);
    walker->folder_count = walker->entry_count = 0;
    walker->text_bytes = 0;
    walker->block++;
}

static uint64_t add_text(struct walker *walker, const char *text, size_t bytes) {
    if (walker->text_bytes + bytes + 8 > walker->text_room) {
        walker->text_room = 2 * (walker->text_bytes + bytes + 8);
        walker->text = grown(walker->text, walker->text_room);
    }
    memcpy(walker->text + walker->text_bytes, text, bytes);
    walker->text_bytes += bytes;
    return walker->text_bytes - bytes;
}

/* A folder that is being read, and where it stands in the present block. */
struct reading {
    int descriptor;
    struct statx about;
    size_t path_bytes;
    uint64_t block;
    uint32_t index;
    bool listed;
};

static void add_entry(struct walker *walker, struct reading *reading, const char *name,
                      const struct statx *about) {
    if (walker->entry_count == MOST_ENTRIES || walker->folder_count == MOST_ENTRIES ||
        walker->text_bytes > MOST_TEXT)
        write_block(walker);
    if (!reading->listed || reading->block != walker->block) {
        reading->listed = true;
        reading->block = walker->block;
        reading->index = walker->folder_count;
        walker->folders[walker->folder_count++] = (struct folder){
            reading->about.stx_ino, reading->about.stx_mode & 07777u, reading->about.stx_uid,
            reading->about.stx_gid, (uint32_t)reading->path_bytes,
            add_text(walker, walker->path, reading->path_bytes)};
    }
    size_t bytes = strlen(name);
    walker->entries[walker->entry_count++] = (struct entry){
        .inode = about->stx_ino,
        .size = (int64_t)about->stx_size,
        .bytes = (int64_t)about->stx_blocks * 512,
        .atime = nanoseconds(about->stx_atime),
        .mtime = nanoseconds(about->stx_mtime),
        .ctime = nanoseconds(about->stx_ctime),
        .uid = about->stx_uid,
        .gid = about->stx_gid,
        .links = about->stx_nlink,
        .folder = reading->index,
        .name_at = (uint32_t)add_text(walker, name, bytes),
        .name_bytes = (uint16_t)bytes,
        .kind = S_ISREG(about->stx_mode) ? REGULAR : S_ISLNK(about->stx_mode) ? LINK : OTHER,
    };
}

/* ---- walk: folders ---- */

static void enter(struct walker *walker, size_t above, const char *name) {
    size_t bytes = strlen(name), needed = above + 1 + bytes;
    if (needed > walker->path_room) {
        walker->path_room = 2 * needed;
        walker->path = grown(walker->path, walker->path_room);
    }
    if (above)
        walker->path[above++] = '/';
    memcpy(walker->path + above, name, bytes);
    walker->path_bytes = above + bytes;
}

static void read_folder(struct walker *walker, int descriptor, int depth);

static void read_subfolder(struct walker *walker, struct reading *reading, const char *name,
                           int depth) {
    if (!reading->path_bytes && !strcmp(name, ASIDE_NAME))
        return;
    enter(walker, reading->path_bytes, name);
    if (hand_over(walker->path, walker->path_bytes, depth >= DEEPEST))
        return;
    int below = open_folder(reading->descriptor, name, strlen(name), O_RDONLY);
    if (below < 0)
        count_failure(errno, walker->path, walker->path_bytes);
    else
        read_folder(walker, below, depth + 1);
}

static void read_entry(struct walker *walker, struct reading *reading, const char *name, int type,
                       int depth) {
    struct statx about;
    if (type == DT_DIR) {
        read_subfolder(walker, reading, name, depth);
    } else if (status_of(reading->descriptor, name, 0, &about)) {
        int reason = errno;
        enter(walker, reading->path_bytes, name);
        count_failure(reason, walker->path, walker->path_bytes);
    } else if (S_ISDIR(about.stx_mode)) {
        read_subfolder(walker, reading, name, depth);
    } else if (!is_here(&about)) {
        other_devices++;
    } else {
        walker->path_bytes = reading->path_bytes;
        add_entry(walker, reading, name, &about);
    }
}

struct dent { /* as getdents64 gives it */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* Read an open folder, whose path is the walker's, and close it. */
static void read_folder(struct walker *walker, int descriptor, int depth) {
    struct reading reading = {.descriptor = descriptor, .path_bytes = walker->path_bytes};
    char *dents = grown(NULL, DENTS);
    long bytes = 0;
    if (status_of(descriptor, "", AT_EMPTY_PATH, &reading.about))
        bytes = -1;
    else
        folders_read++;
    while (bytes >= 0 && (bytes = syscall(SYS_getdents64, descriptor, dents, DENTS)) > 0)
        for (long at = 0; at < bytes;) {
            struct dent *dent = (struct dent *)(dents + at);
            at += dent->bytes;
            if (is_step(dent->name, strlen(dent->name)))
                read_entry(walker, &reading, dent->name, dent->type, depth);
        }
    if (bytes < 0)
        count_failure(errno, walker->path, reading.path_bytes);
    free(dents);
    close(descriptor);
}

static void *walk_some(void *nothing) {
    struct walker *walker = grown(NULL, sizeof *walker);
    memset(walker, 0, sizeof *walker);
    for (struct waiting *item; (item = next_folder());) {
        walker->path_bytes = 0;
        item->path[item->bytes] = 0;
        enter(walker, 0, item->path);
        int descriptor = open_folder(root, item->path, item->bytes, O_RDONLY);
        if (descriptor < 0)
            count_failure(errno, item->path, item->bytes);
        else
            read_folder(walker, descriptor, 0);
        free(item);
        folder_is_read();
    }
    if (walker->entry_count)
        write_block(walker);
    free(walker->text);
    free(walker->path);
    free(walker);
    return nothing;
}

static void run_threads(int count, void *(*work)(void *)) {
    pthread_t threads[MOST_THREADS];
    int started = 0;
    while (started < count - 1 && !pthread_create(&threads[started], NULL, work, NULL))
        started++;
    work(NULL);
    while (started)
        pthread_join(threads[--started], NULL);
}

static int walk(int threads) {
    hand_over("", 0, true);
    run_threads(threads, walk_some);
    char text[256 + sizeof told] = {0};
    int bytes = snprintf(text, sizeof text,
                         "folders %lld\nother_devices %lld\nvanished %lld\nerrors %lld\n%.*s",
                         (long long)folders_read, (long long)other_devices, (long long)vanished,
                         (long long)errors, (int)told_bytes, told);
    struct head head = {END, 0, 0, 0, (uint64_t)(bytes + 7) / 8 * 8, 0};
    write_all(&head, sizeof head);
    write_all(text, head.text_bytes);
    return 0;
}

/* ---- acts: the block that is carried out ---- */

enum act { REMOVE, ASIDE, UNDO, EXPIRE };

static enum act act;
static int aside; /* the folder of what is moved aside; -1 for none */
static bool atime_counts;
static size_t least_depth;
static long long most_errors;

static struct head head;
static struct folder *folders;
static struct entry *entries;
static char *text;
static uint32_t *first_of, *next_of; /* entries of a folder: index + 1, 0 at the end */
static char *letters;
static int *reasons;
static atomic_uint next_group;
static atomic_llong freed;
static int slots; /* the folder of this block below `aside` */

static uint64_t *open_inodes;
static uint32_t open_count;

static char *removed; /* paths of folders, with NULs */
static size_t removed_bytes, removed_room;
static uint32_t removed_count;

static int compare_inodes(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static bool is_open(uint64_t inode) {
    return open_count &&
           bsearch(&inode, open_inodes, open_count, sizeof inode, compare_inodes) != NULL;
}

static char failed(uint32_t index, int reason) {
    reasons[index] = reason;
    errors++;
    return 'e';
}

/* ---- acts: hard links ----
 *
 * To remove one name of an inode changes the time and the number of links that its other names are
 * compared by. What the inode has after our own act is kept here while it has more names. */

struct linked {
    struct linked *next;
    uint64_t inode;
    int64_t ctime;
    uint32_t links;
};

enum { LINK_BUCKETS = 1 << 16, MOST_LINKED = 4 << 20 };

static struct linked *linked[LINK_BUCKETS];
static uint32_t linked_count;
static pthread_mutex_t linking = PTHREAD_MUTEX_INITIALIZER;

static struct linked **find_linked(uint64_t inode) {
    struct linked **at = &linked[inode % LINK_BUCKETS];
    while (*at && (*at)->inode != inode)
        at = &(*at)->next;
    return at;
}

/* What an entry must be now. */
static struct entry expected(const struct entry *planned) {
    struct entry entry = *planned;
    if (entry.links > 1 && *find_linked(entry.inode)) {
        entry.ctime = (*find_linked(entry.inode))->ctime;
        entry.links = (*find_linked(entry.inode))->links;
    }
    return entry;
}

/* Keep what an inode has become. If there is no room its other names stay, as they are changed. */
static void keep_linked(const struct entry *planned, int descriptor) {
    struct statx about;
    if (descriptor < 0 || status_of(descriptor, "", AT_EMPTY_PATH, &about))
        return;
    struct linked **at = find_linked(planned->inode);
    if (*at && !about.stx_nlink) {
        struct linked *gone = *at;
        *at = gone->next;
        free(gone);
        linked_count--;
        return;
    }
    if (!*at) {
        if (linked_count == MOST_LINKED || !about.stx_nlink)
            return;
        *at = grown(NULL, sizeof **at);
        **at = (struct linked){NULL, planned->inode, 0, 0};
        linked_count++;
    }
    (*at)->ctime = nanoseconds(about.stx_ctime);
    (*at)->links = about.stx_nlink;
}

/* ---- acts: one entry ---- */

static bool is_same_file(const struct entry *planned, const struct statx *about) {
    return is_here(about) && planned->inode == about->stx_ino &&
           planned->size == (int64_t)about->stx_size && planned->uid == about->stx_uid &&
           planned->mtime == nanoseconds(about->stx_mtime) &&
           (planned->kind == REGULAR ? S_ISREG(about->stx_mode)
                                     : planned->kind == LINK && S_ISLNK(about->stx_mode));
}

static bool is_as_planned(const struct entry *planned, const struct statx *about) {
    return is_same_file(planned, about) && planned->ctime == nanoseconds(about->stx_ctime) &&
           planned->links == about->stx_nlink && planned->gid == about->stx_gid &&
           (!atime_counts || planned->atime == nanoseconds(about->stx_atime));
}

static void name_slot(char *slot, uint32_t index) { sprintf(slot, "%u", index); }

/* Whether the planned file lies in its slot already: an act that was killed put it there. */
static bool is_aside(const struct entry *planned, uint32_t index) {
    char slot[16];
    struct statx about;
    name_slot(slot, index);
    return slots >= 0 && !status_of(slots, slot, 0, &about) && is_same_file(planned, &about);
}

static int move(int from, const char *name, int to, const char *target) {
    return renameat2(from, name, to, target, RENAME_NOREPLACE);
}

/* Move a file to its slot, where nobody else can come, and compare it again there. */
static char move_aside(int folder, const char *name, const struct entry *planned, uint32_t index) {
    char slot[16];
    struct statx about;
    name_slot(slot, index);
    if (move(folder, name, slots, slot))
        return errno == ENOENT ? 'g' : failed(index, errno);
    if (!status_of(slots, slot, 0, &about) && is_same_file(planned, &about))
        return 'a';
    return move(slots, slot, folder, name) ? 'x' : 'c';
}

static char remove_name(int folder, const char *name, const struct statx *about, uint32_t index) {
    if (unlinkat(folder, name, 0))
        return errno == ENOENT ? 'g' : failed(index, errno);
    if (about->stx_nlink <= 1)
        freed += (long long)about->stx_blocks * 512;
    return 'r';
}

static char take_compared(int folder, const char *name, const struct entry *planned,
                          uint32_t index) {
    struct entry now = expected(planned);
    struct statx about;
    if (status_of(folder, name, 0, &about)) {
        if (errno != ENOENT)
            return failed(index, errno);
        return act == ASIDE && is_aside(planned, index) ? 'a' : 'g';
    }
    if (!is_as_planned(&now, &about))
        return act == ASIDE && is_aside(planned, index) ? 'a' : 'c';
    if (is_open(planned->inode))
        return 'k';
    return act == ASIDE ? move_aside(folder, name, planned, index)
                        : remove_name(folder, name, &about, index);
}

/* The same for an inode with several names: one of them at a time. */
static char take_linked(int folder, const char *name, const struct entry *planned, uint32_t index) {
    pthread_mutex_lock(&linking);
    int held = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char letter = take_compared(folder, name, planned, index);
    if (letter == 'r' || letter == 'a')
        keep_linked(planned, held);
    if (held >= 0)
        close(held);
    pthread_mutex_unlock(&linking);
    return letter;
}

static char put_back(int folder, const char *name, const struct entry *planned, uint32_t index) {
    char slot[16];
    struct statx about;
    name_slot(slot, index);
    if (slots >= 0 && !move(slots, slot, folder, name))
        return 'u';
    if (slots >= 0 && errno == EEXIST)
        return 'o';
    if (slots >= 0 && errno != ENOENT)
        return failed(index, errno);
    bool back = !status_of(folder, name, 0, &about) && is_same_file(planned, &about);
    return back ? 'u' : 'g'; /* an undo that was killed put it there */
}

static char remove_slot(const struct entry *planned, uint32_t index) {
    char slot[16];
    struct statx about;
    name_slot(slot, index);
    if (slots < 0)
        return 'g';
    if (status_of(slots, slot, 0, &about))
        return errno == ENOENT ? 'g' : failed(index, errno);
    return is_same_file(planned, &about) ? remove_name(slots, slot, &about, index) : 'c';
}

static char carry_out(int folder, uint32_t index) {
    char name[UINT16_MAX + 1];
    const struct entry *entry = &entries[index];
    memcpy(name, text + entry->name_at, entry->name_bytes);
    name[entry->name_bytes] = 0;
    if (!is_step(name, entry->name_bytes) || memchr(name, '/', entry->name_bytes))
        return failed(index, EINVAL);
    if (act == EXPIRE)
        return remove_slot(entry, index);
    if (act == UNDO)
        return put_back(folder, name, entry, index);
    return entry->links > 1 ? take_linked(folder, name, entry, index)
                            : take_compared(folder, name, entry, index);
}

/* ---- acts: folders ---- */

static const char *path_of(const struct folder *folder) { return text + folder->path_at; }

static size_t depth_of(const char *path, size_t bytes) {
    size_t depth = bytes > 0;
    for (size_t i = 0; i < bytes; i++)
        depth += path[i] == '/';
    return depth;
}

static size_t parent_of(const char *path, size_t bytes) {
    while (bytes && path[bytes - 1] != '/')
        bytes--;
    return bytes ? bytes - 1 : 0;
}

static void note_removed(const char *path, size_t bytes) {
    pthread_mutex_lock(&telling);
    if (removed_bytes + bytes + 1 > removed_room) {
        removed_room = 2 * (removed_bytes + bytes + 1);
        removed = grown(removed, removed_room);
    }
    memcpy(removed + removed_bytes, path, bytes);
    removed[removed_bytes + bytes] = 0;
    removed_bytes += bytes + 1;
    removed_count++;
    pthread_mutex_unlock(&telling);
}

/* Remove an empty folder by its path; of inode 0 it may be any. */
static bool remove_folder(const char *path, size_t bytes, uint64_t inode) {
    char name[NAME_MAX + 1];
    size_t above = parent_of(path, bytes), start = above ? above + 1 : 0;
    struct statx about;
    if (bytes - start > NAME_MAX)
        return false;
    memcpy(name, path + start, bytes - start);
    name[bytes - start] = 0;
    int parent = open_folder(root, path, above, O_PATH);
    if (parent < 0)
        return false;
    bool gone = !status_of(parent, name, 0, &about) && is_here(&about) &&
                (!inode || inode == about.stx_ino) && !unlinkat(parent, name, AT_REMOVEDIR);
    close(parent);
    return gone;
}

/* Remove a folder that has become empty, and those above it that become empty by that. */
static void remove_empty(const struct folder *folder) {
    const char *path = path_of(folder);
    size_t bytes = folder->path_bytes;
    uint64_t inode = folder->inode;
    while (depth_of(path, bytes) >= least_depth && remove_folder(path, bytes, inode)) {
        note_removed(path, bytes);
        bytes = parent_of(path, bytes);
        inode = 0;
    }
}

/* Open a folder, and make what is missing of its path, with its owner and mode. */
static int open_or_make(const struct folder *folder) {
    const char *path = path_of(folder);
    size_t bytes = folder->path_bytes, done = 0;
    int at = open_folder(root, path, bytes, O_PATH);
    if (at >= 0 || errno != ENOENT || !is_plain(path, bytes))
        return at;
    at = open_folder(root, "", 0, O_RDONLY);
    while (at >= 0 && done < bytes) {
        char name[NAME_MAX + 1];
        const char *slash = memchr(path + done, '/', bytes - done);
        size_t length = (slash ? (size_t)(slash - path) : bytes) - done;
        if (length > NAME_MAX)
            break;
        memcpy(name, path + done, length);
        name[length] = 0;
        bool made = !mkdirat(at, name, 0700);
        int next = open_folder(at, name, length, made ? O_RDONLY : O_PATH);
        if (made && next >= 0 && (fchown(next, folder->uid, folder->gid) ||
                                  fchmod(next, folder->mode)))
            errors++; /* it is there, as the caller's own */
        int reason = errno;
        close(at);
        errno = reason;
        at = next;
        done += length + 1;
    }
    return at;
}

static int open_group(const struct folder *folder) {
    if (act == EXPIRE)
        return -1;
    if (act == UNDO)
        return open_or_make(folder);
    int opened = open_folder(root, path_of(folder), folder->path_bytes, O_PATH);
    struct statx about;
    if (opened < 0 || (!status_of(opened, "", AT_EMPTY_PATH, &about) &&
                       about.stx_ino == folder->inode))
        return opened;
    close(opened); /* another folder has its path */
    errno = ENOENT;
    return -1;
}

/* The letter of an entry whose folder cannot be opened. */
static char without_folder(uint32_t index, int reason) {
    if (act == ASIDE && is_aside(&entries[index], index))
        return 'a';
    if (act == UNDO)
        return failed(index, reason);
    if (reason == ENOENT)
        return 'g';
    if (reason == ENOTDIR || reason == ELOOP || reason == EXDEV)
        return 'c'; /* a link, a file or another device has come into its path */
    return failed(index, reason);
}

static void carry_out_group(uint32_t group) {
    const struct folder *folder = &folders[group];
    int opened = open_group(folder), reason = errno;
    bool fewer = false;
    for (uint32_t next = first_of[group]; next; next = next_of[next - 1]) {
        uint32_t index = next - 1;
        if (!entries[index].take)
            letters[index] = '-';
        else if (errors > most_errors)
            letters[index] = 'n';
        else if (opened < 0 && act != EXPIRE)
            letters[index] = without_folder(index, reason);
        else
            letters[index] = carry_out(opened, index);
        fewer |= strchr("rag", letters[index]) != NULL;
    }
    if (opened >= 0)
        close(opened);
    if (fewer && least_depth && act <= ASIDE && errors <= most_errors)
        remove_empty(folder);
}

static void *carry_out_some(void *nothing) {
    for (uint32_t group; (group = next_group++) < head.folders;)
        carry_out_group(group);
    return nothing;
}

/* ---- acts: blocks ---- */

static void refuse(const char *reason) {
    fprintf(stderr, "it cannot go on: %s\n", reason);
    exit(3);
}

static void read_skip(void) {
    open_count = head.entries;
    open_inodes = grown(open_inodes, (open_count + 1) * sizeof *open_inodes);
    read_all(open_inodes, open_count * sizeof *open_inodes);
    qsort(open_inodes, open_count, sizeof *open_inodes, compare_inodes);
}

static void check_block(void) {
    for (uint32_t i = 0; i < head.folders; i++)
        if (folders[i].path_at > head.text_bytes ||
            folders[i].path_bytes > head.text_bytes - folders[i].path_at)
            refuse("a path of the block is outside of its text");
    for (uint32_t i = 0; i < head.entries; i++) {
        if (entries[i].folder >= head.folders)
            refuse("an entry of the block has no folder");
        if ((uint64_t)entries[i].name_at + entries[i].name_bytes > head.text_bytes)
            refuse("a name of the block is outside of its text");
    }
}

static void read_block(void) {
    if (head.entries > MOST_FOLDERS_IN || head.folders > MOST_FOLDERS_IN ||
        head.text_bytes > MOST_TEXT_IN)
        refuse("the block is too large");
    folders = grown(folders, (head.folders + 1) * sizeof *folders);
    entries = grown(entries, (head.entries + 1) * sizeof *entries);
    text = grown(text, head.text_bytes + 1);
    first_of = grown(first_of, (head.folders + 1) * sizeof *first_of);
    next_of = grown(next_of, (head.entries + 1) * sizeof *next_of);
    letters = grown(letters, head.entries + 1);
    reasons = grown(reasons, (head.entries + 1) * sizeof *reasons);
    if ((head.folders && !read_all(folders, head.folders * sizeof *folders)) ||
        (head.entries && !read_all(entries, head.entries * sizeof *entries)) ||
        (head.text_bytes && !read_all(text, head.text_bytes)))
        refuse("the block ends too early");
    check_block();
    memset(first_of, 0, head.folders * sizeof *first_of);
    memset(reasons, 0, head.entries * sizeof *reasons);
    for (uint32_t i = head.entries; i--;) {
        next_of[i] = first_of[entries[i].folder];
        first_of[entries[i].folder] = i + 1;
    }
}

static void answer(void) {
    uint32_t failures = 0;
    for (uint32_t i = 0; i < head.entries; i++)
        failures += reasons[i] != 0;
    char line[160];
    int bytes = snprintf(line, sizeof line, "done %llu %u %lld %u %u %zu\n",
                         (unsigned long long)head.number, head.entries, (long long)freed, failures,
                         removed_count, removed_bytes);
    write_all(line, (size_t)bytes);
    write_all(letters, head.entries);
    for (uint32_t i = 0; i < head.entries; i++)
        if (reasons[i]) {
            bytes = snprintf(line, sizeof line, "%u %d\n", i, reasons[i]);
            write_all(line, (size_t)bytes);
        }
    write_all(removed, removed_bytes);
}

/* Open the folder of a block's slots: it is made by who moves files there. */
static void open_slots(void) {
    char name[32];
    slots = -1;
    if (aside < 0)
        return;
    snprintf(name, sizeof name, "%llu", (unsigned long long)head.number);
    if (act == ASIDE && mkdirat(aside, name, 0700) && errno != EEXIST)
        refuse("no folder can be made for what is moved aside");
    slots = openat(aside, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void close_slots(void) {
    char name[32];
    if (slots < 0)
        return;
    close(slots);
    snprintf(name, sizeof name, "%llu", (unsigned long long)head.number);
    if (act != ASIDE)
        unlinkat(aside, name, AT_REMOVEDIR); /* if it is empty */
}

static int carry_out_blocks(int threads) {
    while (read_all(&head, sizeof head)) {
        if (head.magic == SKIP) {
            read_skip();
            continue;
        }
        if (head.magic != BLOCK)
            refuse("what comes is no block");
        read_block();
        open_slots();
        next_group = 0;
        freed = 0;
        removed_bytes = removed_count = 0;
        run_threads(threads, carry_out_some);
        close_slots();
        answer();
    }
    return 0;
}

static long number(const char *word) {
    char *end;
    long value = strtol(word, &end, 10);
    if (*end || !*word) {
        fprintf(stderr, "%s: no number\n", word);
        exit(2);
    }
    return value;
}

int main(int count, char **words) {
    static const char *const acts[] = {"remove", "aside", "undo", "expire"};
    struct stat about;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* who counts what is done has gone */
    signal(SIGPIPE, SIG_IGN);
    if (count < 5)
        return 2;
    root = (int)number(words[2]);
    int threads = (int)number(words[3]);
    by_steps = !strcmp(words[4], "steps") || is_without_openat2();
    if (threads < 1 || threads > MOST_THREADS || fstat(root, &about))
        return 2;
    device = about.st_dev;
    if (!strcmp(words[1], "walk"))
        return walk(threads);
    if (count < 9)
        return 2;
    aside = (int)number(words[5]);
    atime_counts = number(words[6]);
    least_depth = (size_t)number(words[7]);
    most_errors = number(words[8]);
    for (int i = 0; i < 4; i++)
        if (!strcmp(words[1], acts[i])) {
            act = (enum act)i;
            return carry_out_blocks(threads);
        }
    return 2;
}
