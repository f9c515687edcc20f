/* guard: tells what programs are made for, and judges them by the rules of a site.
 *
 *   guard scan < PATHS              facts and findings of files; paths and fields end with NUL
 *   guard launch [-n T] [-N N] [-c C] [-l LAUNCHER] -- WORD...
 *                                   judges the programs that a launch line starts; LAUNCHER: srun,
 *                                   mpirun, mpiexec, aprun, jsrun; argv: the words are a program and
 *                                   its arguments; shell: WORD is a line that a shell is to run
 *   guard watch [-b] [PROCESS]      judges the processes of this job until PROCESS (the parent) ends;
 *                                   -b: goes on in a session of its own, in the background
 *
 * launch and watch print a line for each finding ("refuse<TAB>text", "warn<TAB>text") and append it
 * to the log; launch exits 1 if a rule refuses. Where a program could not be judged it prints
 * "unjudged<TAB>text", and "log<TAB>text" for a log that is not this user's. rules.h is generated from guard.yaml
 * (rules/launch_expressions.py): RULES, which ends with {0}, and LOG_FOLDER.
 *
 * Formats: System V gABI (ELF), GNU property notes (x86-64 psABI), and elf(5). Files are mapped;
 * every access goes through `at`, which checks its bounds.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NEEDED = 256, MAX_SEEN = 4096, MAX_NOTES = 64 };
#define MAX_SEARCHED ((size_t)256 << 20) /* bytes of a file that are searched for texts */

struct facts {
    char path[PATH_MAX], name[256], user[64], kind[16], machine[16], linkage[16], interpreter[256];
    char mpi[16], mpi_version[32], openmp[16], glibc[32], rpath[1024], build_id[65];
    char needed[8192]; /* names of libraries, blanks between and around them */
    long isa_level, tasks, nodes, threads;
};

struct rule {
    const char *name, *message;
    bool refuse;
    long long until; /* seconds since the epoch; 0: for ever */
    bool (*holds)(const struct facts *);
    bool (*excepted)(const struct facts *, long long now);
};

/* Return the order of two versions, by their numbers: "3.10" is after "3.9". */
static int version_order(const char *one, const char *other)
{
    while (*one || *other) {
        char *one_end, *other_end;
        unsigned long first = strtoul(one, &one_end, 10), second = strtoul(other, &other_end, 10);
        if (first != second)
            return first < second ? -1 : 1;
        one = strpbrk(one_end, "0123456789"), other = strpbrk(other_end, "0123456789");
        one = one ? one : "", other = other ? other : "";
    }
    return 0;
}

#include "launch_line.h"
#include "rules.h"

/* ---- a file ---- */

struct file {
    const unsigned char *data;
    size_t size;
    struct stat about;
};

static const void *at(const struct file *file, uint64_t offset, uint64_t length)
{
    return offset <= file->size && length <= file->size - offset ? file->data + offset : NULL;
}

static bool copy(const struct file *file, uint64_t offset, void *target, size_t length)
{
    const void *from = at(file, offset, length);
    if (from)
        memcpy(target, from, length);
    return from != NULL;
}

/* Copy a text that ends with NUL or where the file ends. Characters of control become '?'. */
static void copy_text(const struct file *file, uint64_t offset, char *target, size_t room)
{
    size_t used = 0;
    const unsigned char *from;
    while (used + 1 < room && (from = at(file, offset + used, 1)) && *from) {
        target[used++] = *from < 32 || *from == 127 ? '?' : (char)*from;
    }
    target[used] = 0;
}

static bool open_file(const char *path, struct file *file)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *file = (struct file){0};
    if (descriptor < 0)
        return false;
    bool fits = !fstat(descriptor, &file->about) && S_ISREG(file->about.st_mode);
    if (fits && file->about.st_size > 0) {
        void *data = mmap(NULL, (size_t)file->about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        fits = data != MAP_FAILED;
        if (fits)
            file->data = data, file->size = (size_t)file->about.st_size;
    }
    close(descriptor);
    return fits;
}

static void close_file(struct file *file)
{
    if (file->data)
        munmap((void *)file->data, file->size);
}

/* ---- texts inside a file: MPI and OpenMP runtimes, their versions ---- */

struct runtime {
    char mpi[16], version[32], openmp[16];
};

static const unsigned char *find(const struct file *file, const char *text)
{
    size_t size = file->size < MAX_SEARCHED ? file->size : MAX_SEARCHED;
    return size ? memmem(file->data, size, text, strlen(text)) : NULL;
}

/* Whether a file holds MPI_Init. This program holds no text that begins with M, so that it does not
 * take itself for one that is linked to MPI. */
static bool holds_mpi(const struct file *file)
{
    struct file rest = *file;
    const unsigned char *here;
    while ((here = find(&rest, "PI_Init"))) {
        if (here > file->data && here[-1] == 'M')
            return true;
        rest.size -= (size_t)(here + 1 - rest.data);
        rest.data = here + 1;
    }
    return false;
}

/* Copy "5.0.2" or "3.4a2"; return its length, 0 if there is none. */
static size_t copy_version(const unsigned char *from, const unsigned char *end, char *target)
{
    size_t used = 0;
    while (from + used < end && used < 31 && from[used] && strchr("0123456789.abprc", from[used]))
        target[used] = (char)from[used], used++;
    while (used && (target[used - 1] < '0' || target[used - 1] > '9'))
        used--;
    target[used] = 0;
    return used && strchr(target, '.') && target[0] >= '0' && target[0] <= '9' ? used : 0;
}

/* Find the first text of a file that is a version and nothing else: "5.0.2", or where there is none
 * of three numbers, "3.2". */
static void lone_version(const struct file *file, char *target)
{
    size_t size = file->size < MAX_SEARCHED ? file->size : MAX_SEARCHED;
    const unsigned char *end = file->data + size, *here = file->data;
    char found[32];
    while (here < end && (here = memchr(here, 0, (size_t)(end - here))) && ++here < end) {
        if (*here < '1' || *here > '9')
            continue;
        size_t length = copy_version(here, end, found);
        if (!length || here + length >= end || here[length])
            continue;
        if (strchr(strchr(found, '.') + 1, '.')) {
            strcpy(target, found);
            return;
        }
        if (!*target)
            strcpy(target, found);
    }
}

/* Families in the order in which they are asked: those derived from MPICH hold its texts, too. */
static const struct {
    const char *text, *mpi;
} FAMILIES[] = {
    {"CRAY MPICH version", "cray-mpich"}, {"Intel(R) MPI Library", "intel-mpi"},
    {"MVAPICH2 Version", "mvapich"},      {"MVAPICH Version", "mvapich"},
    {"MPICH Version:", "mpich"},          {"Open MPI v", "openmpi"},
};

static void search(const struct file *file, struct runtime *found)
{
    *found = (struct runtime){0};
    if (find(file, "GOMP_parallel"))
        strcpy(found->openmp, "gomp");
    else if (find(file, "__kmpc_fork_call"))
        strcpy(found->openmp, "llvm");
    if (!holds_mpi(file))
        return;
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
        const unsigned char *here = find(file, FAMILIES[i].text), *end = file->data + file->size;
        if (!here)
            continue;
        strcpy(found->mpi, FAMILIES[i].mpi);
        here += strlen(FAMILIES[i].text);
        while (here < end && (*here == ' ' || *here == '\t' || *here == ':'))
            here++;
        if (!copy_version(here, end, found->version)) {
            found->version[0] = 0;
            lone_version(file, found->version);
        }
        return;
    }
}

/* Return the folder of the cache, this user's own; "" if there is none that is safe. */
static const char *cache_folder(void)
{
    static char folder[PATH_MAX];
    static bool known;
    const char *base = getenv("XDG_RUNTIME_DIR");
    struct stat about;
    if (known)
        return folder;
    known = true;
    if (base && *base == '/')
        snprintf(folder, sizeof folder, "%.3000s/seatrial-guard", base);
    else
        snprintf(folder, sizeof folder, "/tmp/seatrial-guard-%u", (unsigned)geteuid());
    mkdir(folder, 0700);
    if (lstat(folder, &about) || !S_ISDIR(about.st_mode) || about.st_uid != geteuid() ||
        about.st_mode & 077)
        folder[0] = 0;
    return folder;
}

static bool keeps_programs; /* scan keeps what it found in libraries, not in each file */

/* Search a file, or take what was found before in a file of this inode, size and time. */
static void cached_search(const struct file *file, struct runtime *found)
{
    const struct stat *about = &file->about;
    char name[PATH_MAX + 64], fresh[PATH_MAX + 128], key[96], line[256] = "";
    if (!*cache_folder()) {
        search(file, found);
        return;
    }
    snprintf(name, sizeof name, "%s/%llx-%llx", cache_folder(), (unsigned long long)about->st_dev,
             (unsigned long long)about->st_ino);
    int length = snprintf(key, sizeof key, "1 %lld %lld.%09ld", (long long)about->st_size,
                          (long long)about->st_mtim.tv_sec, about->st_mtim.tv_nsec);
    int descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor >= 0) {
        ssize_t got = read(descriptor, line, sizeof line - 1);
        close(descriptor);
        *found = (struct runtime){0};
        if (got > length && !strncmp(line, key, (size_t)length) && line[got - 1] == '\n' &&
            sscanf(line + length, " mpi=%15[^;\n];%31[^;\n];%15[^;\n]", found->mpi, found->version,
                   found->openmp) == 3) {
            char *texts[] = {found->mpi, found->version, found->openmp};
            for (size_t i = 0; i < 3; i++)
                if (!strcmp(texts[i], "-"))
                    texts[i][0] = 0;
            return;
        }
    }
    search(file, found);
    snprintf(fresh, sizeof fresh, "%s.%ld", name, (long)getpid());
    if ((descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
        return;
    int size = snprintf(line, sizeof line, "%s mpi=%s;%s;%s\n", key, *found->mpi ? found->mpi : "-",
                        *found->version ? found->version : "-",
                        *found->openmp ? found->openmp : "-");
    bool whole = write(descriptor, line, (size_t)size) == size;
    close(descriptor);
    if (!whole || rename(fresh, name))
        unlink(fresh);
}

/* ---- ELF ---- */

struct elf {
    struct file file;
    Elf64_Ehdr header;
    uint64_t needed[MAX_NEEDED], strings, versions, version_count;
    size_t needed_count;
    bool is_dynamic;
    char runpath[1024];
};

static bool segment(const struct elf *elf, size_t number, Elf64_Phdr *found)
{
    return elf->header.e_phentsize == sizeof *found && number < elf->header.e_phnum &&
           copy(&elf->file, elf->header.e_phoff + number * sizeof *found, found, sizeof *found);
}

/* Return whether the file has all that its header says: no half of a copy. */
static bool is_whole(const struct elf *elf)
{
    const Elf64_Ehdr *header = &elf->header;
    Elf64_Phdr each;
    for (size_t i = 0; i < header->e_phnum; i++)
        if (!segment(elf, i, &each) || !at(&elf->file, each.p_offset, each.p_filesz))
            return false;
    return !header->e_shoff || at(&elf->file, header->e_shoff,
                                  (uint64_t)header->e_shnum * header->e_shentsize) != NULL;
}

/* Return the offset in the file of an address; a place outside of it if no segment holds it. */
static uint64_t offset_of(const struct elf *elf, uint64_t address)
{
    Elf64_Phdr each;
    for (size_t i = 0; segment(elf, i, &each); i++)
        if (each.p_type == PT_LOAD && address >= each.p_vaddr &&
            address - each.p_vaddr < each.p_filesz)
            return each.p_offset + (address - each.p_vaddr);
    return UINT64_MAX;
}

static void text_of(const struct elf *elf, uint64_t index, char *target, size_t room)
{
    target[0] = 0;
    if (elf->strings != UINT64_MAX && index < UINT32_MAX)
        copy_text(&elf->file, elf->strings + index, target, room);
}

static void read_dynamic(struct elf *elf, const Elf64_Phdr *of, struct facts *facts)
{
    uint64_t rpath = UINT64_MAX, runpath = UINT64_MAX;
    Elf64_Dyn each;
    elf->strings = elf->versions = UINT64_MAX;
    for (uint64_t done = 0; done + sizeof each <= of->p_filesz; done += sizeof each) {
        if (!copy(&elf->file, of->p_offset + done, &each, sizeof each) || each.d_tag == DT_NULL)
            break;
        if (each.d_tag == DT_NEEDED && elf->needed_count < MAX_NEEDED)
            elf->needed[elf->needed_count++] = each.d_un.d_val;
        else if (each.d_tag == DT_STRTAB)
            elf->strings = offset_of(elf, each.d_un.d_ptr);
        else if (each.d_tag == DT_VERNEED)
            elf->versions = offset_of(elf, each.d_un.d_ptr);
        else if (each.d_tag == DT_VERNEEDNUM)
            elf->version_count = each.d_un.d_val;
        else if (each.d_tag == DT_RPATH)
            rpath = each.d_un.d_val;
        else if (each.d_tag == DT_RUNPATH)
            runpath = each.d_un.d_val;
    }
    text_of(elf, runpath, elf->runpath, sizeof elf->runpath);
    text_of(elf, runpath != UINT64_MAX ? runpath : rpath, facts->rpath, sizeof facts->rpath);
}

/* The highest GLIBC_x.y of the versions that symbols need. */
static void read_glibc(const struct elf *elf, struct facts *facts)
{
    uint64_t here = elf->versions;
    for (uint64_t i = 0; i < elf->version_count && i < 1024; i++) {
        Elf64_Verneed need;
        Elf64_Vernaux one;
        if (!copy(&elf->file, here, &need, sizeof need))
            return;
        uint64_t next = here + need.vn_aux;
        for (unsigned j = 0; j < need.vn_cnt && j < 1024; j++) {
            char name[40];
            if (!copy(&elf->file, next, &one, sizeof one))
                break;
            text_of(elf, one.vna_name, name, sizeof name);
            if (!strncmp(name, "GLIBC_", 6) && name[6] >= '0' && name[6] <= '9' &&
                strlen(name + 6) < sizeof facts->glibc &&
                version_order(name + 6, facts->glibc) > 0)
                strcpy(facts->glibc, name + 6);
            if (!one.vna_next)
                break;
            next += one.vna_next;
        }
        if (!need.vn_next)
            return;
        here += need.vn_next;
    }
}

/* Properties are pairs of type and size; 0xc0008002 holds a bit for each x86-64 level needed. */
static void read_properties(const struct file *file, uint64_t here, uint64_t end, struct facts *facts)
{
    uint32_t head[2], bits;
    while (here + 8 <= end && copy(file, here, head, sizeof head)) {
        if (head[0] == 0xc0008002 && head[1] >= 4 && copy(file, here + 8, &bits, sizeof bits))
            for (int level = 4; level >= 1; level--)
                if (bits & (1U << (level - 1)) && facts->isa_level < level)
                    facts->isa_level = level;
        here += 8 + (((uint64_t)head[1] + 7) & ~(uint64_t)7);
    }
}

static void read_notes(const struct elf *elf, const Elf64_Phdr *of, struct facts *facts)
{
    uint64_t align = of->p_align == 8 ? 7 : 3, here = of->p_offset, end = here + of->p_filesz;
    Elf64_Nhdr note;
    for (int i = 0; i < MAX_NOTES && here < end; i++) {
        if (!copy(&elf->file, here, &note, sizeof note))
            return;
        uint64_t body = here + sizeof note + (((uint64_t)note.n_namesz + 3) & ~(uint64_t)3);
        const char *name = at(&elf->file, here + sizeof note, 4);
        const unsigned char *bytes = at(&elf->file, body, note.n_descsz);
        if (name && bytes && note.n_namesz == 4 && !memcmp(name, "GNU", 4)) {
            if (note.n_type == NT_GNU_BUILD_ID && !*facts->build_id)
                for (uint32_t j = 0; j < note.n_descsz && j < 32; j++)
                    snprintf(facts->build_id + 2 * j, 3, "%02x", bytes[j]);
            else if (note.n_type == 5) /* NT_GNU_PROPERTY_TYPE_0 */
                read_properties(&elf->file, body, body + note.n_descsz, facts);
        }
        here = body + (((uint64_t)note.n_descsz + align) & ~align);
    }
}

static const struct {
    const char *prefix, *mpi, *openmp;
} LIBRARIES[] = {
    {"libmpi_cray.so", "cray-mpich", ""}, {"libmpi_gnu", "cray-mpich", ""},
    {"libmpi_intel", "cray-mpich", ""},   {"libmpi_nvidia", "cray-mpich", ""},
    {"libmpi_amd", "cray-mpich", ""},     {"libmpich.so", "mpich", ""},
    {"libmpi.so.12", "mpich", ""},        {"libmpi.so", "openmpi", ""},
    {"libgomp.so", "", "gomp"},           {"libiomp5.so", "", "intel"},
    {"libomp.so", "", "llvm"},            {"libcraymp.so", "", "cray"},
};

/* Open the library that the loader would take: DT_RPATH if there is no DT_RUNPATH,
 * LD_LIBRARY_PATH, DT_RUNPATH, usual folders (ld.so(8)). */
static bool open_library(const struct elf *elf, const struct facts *facts, const char *name,
                         struct file *found)
{
    const char *environment = getenv("LD_LIBRARY_PATH");
    const char *lists[] = {*elf->runpath ? "" : facts->rpath, environment ? environment : "",
                           elf->runpath,
                           "/lib64:/usr/lib64:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
                           "/lib/aarch64-linux-gnu:/lib:/usr/lib:/usr/local/lib"};
    const char *slash = strrchr(facts->path, '/');
    int origin = slash ? (int)(slash - facts->path) : 1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const char *here = lists[i]; *here;) {
            int length = (int)strcspn(here, ":");
            char path[2 * PATH_MAX];
            bool relative = length >= 7 && !strncmp(here, "$ORIGIN", 7);
            snprintf(path, sizeof path, "%.*s%.*s/%s", relative ? origin : 0,
                     slash ? facts->path : ".", relative ? length - 7 : length,
                     relative ? here + 7 : here, name);
            if (length && open_file(path, found))
                return true;
            here += length + (here[length] == ':');
        }
    }
    return false;
}

static void read_libraries(const struct elf *elf, struct facts *facts)
{
    for (size_t i = 0; i < elf->needed_count; i++) {
        char name[256];
        text_of(elf, elf->needed[i], name, sizeof name);
        size_t used = strlen(facts->needed), length = strlen(name);
        if (length && !strchr(name, ' ') && used + length + 3 < sizeof facts->needed)
            sprintf(facts->needed + used, "%s%s ", used ? "" : " ", name);
        for (size_t j = 0; j < sizeof LIBRARIES / sizeof *LIBRARIES; j++) {
            if (strncmp(name, LIBRARIES[j].prefix, strlen(LIBRARIES[j].prefix)))
                continue;
            if (*LIBRARIES[j].openmp)
                strcpy(facts->openmp, LIBRARIES[j].openmp);
            struct file library;
            if (*LIBRARIES[j].mpi && !*facts->mpi) {
                struct runtime found = {0};
                strcpy(facts->mpi, LIBRARIES[j].mpi);
                if (!strchr(name, '/') && open_library(elf, facts, name, &library)) {
                    cached_search(&library, &found);
                    close_file(&library);
                }
                if (*found.mpi) /* libmpi.so.12 is of MPICH, of Intel, or of Open MPI 1.10 */
                    strcpy(facts->mpi, found.mpi), strcpy(facts->mpi_version, found.version);
            }
            break;
        }
    }
}

static const char *machine_name(unsigned number)
{
    return number == EM_X86_64    ? "x86_64"
           : number == EM_AARCH64 ? "aarch64"
           : number == EM_PPC64   ? "ppc64"
           : number == EM_RISCV   ? "riscv"
           : number == EM_386     ? "i386"
                                  : "other";
}

static void read_elf(struct elf *elf, struct facts *facts)
{
    Elf64_Phdr each;
    struct runtime found;
    strcpy(facts->kind, "elf");
    if (!copy(&elf->file, 0, &elf->header, sizeof elf->header)) {
        strcpy(facts->kind, "cut");
        return;
    }
    strcpy(facts->machine, machine_name(elf->header.e_machine)); /* at one place in both classes */
    if (elf->header.e_ident[EI_CLASS] != ELFCLASS64 || elf->header.e_ident[EI_DATA] != ELFDATA2LSB)
        return;
    if (!is_whole(elf))
        strcpy(facts->kind, "cut");
    for (size_t i = 0; segment(elf, i, &each); i++) {
        if (each.p_type == PT_DYNAMIC && !elf->is_dynamic) {
            elf->is_dynamic = true;
            read_dynamic(elf, &each, facts);
        } else if (each.p_type == PT_NOTE)
            read_notes(elf, &each, facts);
    }
    if (elf->is_dynamic) {
        read_glibc(elf, facts);
        read_libraries(elf, facts);
    }
    strcpy(facts->linkage, elf->needed_count ? "dynamic" : "static");
    if (!*facts->mpi) {
        (keeps_programs ? cached_search : search)(&elf->file, &found);
        strcpy(facts->mpi, found.mpi), strcpy(facts->mpi_version, found.version);
        if (!elf->needed_count)
            strcpy(facts->openmp, found.openmp);
    }
}

static sigjmp_buf lost; /* a file that shrinks while it is mapped raises SIGBUS */

static void on_bus_error(int number)
{
    (void)number;
    siglongjmp(lost, 1);
}

/* Set who launches: the name of the real user, whatever $USER says; the number where it has none. */
static void set_user(struct facts *facts)
{
    static char name[sizeof facts->user];
    if (!*name) {
        const struct passwd *found = getpwuid(getuid());
        if (found && *found->pw_name)
            snprintf(name, sizeof name, "%.63s", found->pw_name);
        else
            snprintf(name, sizeof name, "%u", (unsigned)getuid());
    }
    strcpy(facts->user, name);
}

/* Read a file; false with errno if it cannot be opened. `shown` without links becomes the fact. */
static bool read_facts(const char *path, const char *shown, struct facts *facts)
{
    static struct elf elf;
    const char *slash;
    elf = (struct elf){0};
    if (!realpath(shown, facts->path))
        snprintf(facts->path, sizeof facts->path, "%s", shown);
    slash = strrchr(facts->path, '/');
    snprintf(facts->name, sizeof facts->name, "%.255s", slash ? slash + 1 : facts->path);
    set_user(facts);
    errno = 0;
    if (!open_file(path, &elf.file))
        return false;
    if (sigsetjmp(lost, 1))
        strcpy(facts->kind, "unreadable");
    else if (elf.file.size >= SELFMAG && !memcmp(elf.file.data, ELFMAG, SELFMAG))
        read_elf(&elf, facts);
    else if (elf.file.size > 2 && !memcmp(elf.file.data, "#!", 2)) {
        strcpy(facts->kind, "script");
        copy_text(&elf.file, 2 + (elf.file.size > 2 && elf.file.data[2] == ' '), facts->interpreter,
                  sizeof facts->interpreter);
        facts->interpreter[strcspn(facts->interpreter, " ?")] = 0;
    } else
        strcpy(facts->kind, "other");
    close_file(&elf.file);
    return true;
}

/* ---- judging ---- */

static const struct rule *next_finding(const struct facts *facts, size_t *number)
{
    long long now = time(NULL);
    while (RULES[*number].name) {
        const struct rule *each = &RULES[(*number)++];
        if ((!each->until || now < each->until) && each->holds(facts) && !each->excepted(facts, now))
            return each;
    }
    return NULL;
}

/* Append a line to the log of this user. What is not this user's own regular file is not written to,
 * and is told; opening it never waits (a FIFO would). */
static void append_to_log(const struct facts *facts, const char *action, const char *rule,
                          const char *look)
{
    const char *folder = getenv("SEATRIAL_GUARD_LOG"), *job = getenv("SLURM_JOB_ID");
    char path[PATH_MAX], line[PATH_MAX + 512], host[256] = "", when[32];
    static bool told;
    struct stat about;
    time_t now = time(NULL);
    folder = folder && *folder ? folder : LOG_FOLDER;
    gethostname(host, sizeof host - 1);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    snprintf(path, sizeof path, "%.3000s/%u.log", folder, (unsigned)geteuid());
    int size = snprintf(line, sizeof line, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", when, facts->user, host,
                        job ? job : "", look, action, rule, facts->path);
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                                    O_NOCTTY, 0644);
    bool strange = descriptor < 0 ? errno != ENOENT && !lstat(path, &about) &&
                                        (!S_ISREG(about.st_mode) || about.st_uid != geteuid())
                                  : fstat(descriptor, &about) || !S_ISREG(about.st_mode) ||
                                        about.st_uid != geteuid() || about.st_nlink != 1;
    if (strange && !told) {
        told = true;
        printf("log\t%s: is no regular file of this user; findings are not in the log\n", path);
    }
    if (descriptor < 0)
        return; /* a log that cannot be written stops nobody's launch */
    if (!strange && size > 0 && (size_t)size < sizeof line &&
        write(descriptor, line, (size_t)size) != size)
        size = 0;
    close(descriptor);
}

static bool judge(const struct facts *facts, const char *look)
{
    bool refused = false;
    const struct rule *rule;
    for (size_t number = 0; (rule = next_finding(facts, &number));) {
        refused |= rule->refuse;
        printf("%s\t%s: %s (rule %s)\n", rule->refuse ? "refuse" : "warn", facts->path,
               rule->message, rule->name);
        append_to_log(facts, rule->refuse ? "refuse" : "warn", rule->name, look);
    }
    return refused;
}

/* ---- what is asked ---- */

static void print_facts(const char *path, const struct facts *facts, bool readable)
{
    const struct { const char *name, *text; } texts[] = {
        {"kind", readable ? facts->kind : "unreadable"}, {"machine", facts->machine},
        {"linkage", facts->linkage}, {"mpi", facts->mpi}, {"mpi_version", facts->mpi_version},
        {"openmp", facts->openmp}, {"glibc", facts->glibc}, {"rpath", facts->rpath},
        {"build_id", facts->build_id}, {"interpreter", facts->interpreter},
    };
    int needed = (int)strlen(facts->needed);
    printf("%s%c", path, 0);
    if (needed)
        printf("needed=%.*s%c", needed - 2, facts->needed + 1, 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i].text)
            printf("%s=%s%c", texts[i].name, texts[i].text, 0);
    if (facts->isa_level)
        printf("isa_level=%ld%c", facts->isa_level, 0);
    const struct rule *rule;
    for (size_t number = 0; readable && (rule = next_finding(facts, &number));)
        printf("%s=%s%c", rule->refuse ? "refuse" : "warn", rule->name, 0);
    putchar(0);
}

static int scan(const struct facts *asked)
{
    char *path = NULL;
    size_t room = 0;
    while (getdelim(&path, &room, 0, stdin) > 0) {
        static struct facts facts;
        facts = *asked;
        bool readable = read_facts(path, path, &facts);
        print_facts(path, &facts, readable);
        fflush(stdout); /* so that whoever asks one by one is answered */
    }
    free(path);
    return 0;
}

/* Find the program that a word of a launch line names, as execvp(3) does. */
static bool resolve(const char *word, char *path, size_t room)
{
    struct stat about;
    const char *list = strchr(word, '/') ? "" : getenv("PATH");
    for (const char *here = list ? list : "";;) {
        int length = (int)strcspn(here, ":");
        int size = snprintf(path, room, "%.*s%s%s", length, here, length ? "/" : "", word);
        if (size > 0 && (size_t)size < room && !access(path, X_OK) && !stat(path, &about) &&
            S_ISREG(about.st_mode))
            return true;
        if (!here[length])
            return false;
        here += length + 1;
    }
}

/* Tell that what a launch starts was not judged. It goes on. `logged`: where no program was found;
 * shells and scripts are too many for the log, and the second look (watch) sees what they start. */
static void unjudged(const char *path, const char *reason, bool logged)
{
    static struct facts facts;
    facts = (struct facts){0};
    set_user(&facts);
    snprintf(facts.path, sizeof facts.path, "%s", path);
    for (char *here = facts.path; *here; here++)
        if ((unsigned char)*here < 32 || *here == 127)
            *here = '?';
    printf("unjudged\t%s: %s\n", facts.path, reason);
    if (logged && RULES[0].name)
        append_to_log(&facts, "unjudged", "", "launch");
}

static bool program_at(char **words, const struct facts *asked, bool *refused, int depth);

/* Judge the program among the words behind a script or a tool whose options are not known: the
 * first executable file that is named by a path, or uses MPI. */
static bool program_among(char **words, const struct facts *asked, bool *refused, int depth)
{
    char path[PATH_MAX];
    static struct facts facts;
    for (; *words && strcmp(*words, ":"); words++) {
        if (**words == '-' || !resolve(*words, path, sizeof path))
            continue;
        facts = *asked;
        if (strchr(*words, '/') || tool_of(*words) ||
            (read_facts(path, path, &facts) && *facts.mpi))
            return program_at(words, asked, refused, depth + 1);
    }
    return false;
}

/* Judge the program that words start, behind tools such as env and numactl. Return whether the
 * first of them is an executable file. */
static bool program_at(char **words, const struct facts *asked, bool *refused, int depth)
{
    char path[PATH_MAX], **rest;
    struct facts *facts;
    const char *slash, *name;
    if (!*words)
        return false;
    slash = strrchr(*words, '/');
    name = slash ? slash + 1 : *words;
    const struct tool *tool = tool_of(name);
    bool is_shell = is_among(SHELLS, name, strlen(name)), whole = false;
    if (!resolve(*words, path, sizeof path)) { /* a tool may be on the nodes alone */
        rest = tool ? behind_tool(tool, words + 1) : NULL;
        return rest && *rest && depth < 20 && program_at(rest, asked, refused, depth + 1);
    }
    if (depth > 20 || !(facts = malloc(sizeof *facts))) {
        unjudged(path, "too many tools start one another", true);
        return true;
    }
    *facts = *asked;
    if (!read_facts(path, path, facts)) {
        unjudged(path, "cannot be read", true);
    } else if (*facts->mpi || !(tool || is_shell)) { /* a program, whatever its name */
        *refused |= judge(facts, "launch");
        if (strcmp(facts->kind, "script") && (strcmp(facts->kind, "elf") || !*facts->linkage))
            unjudged(path, "is no whole program of a kind that the guard reads", true);
        if (!strcmp(facts->kind, "script") || is_among(OPEN_TOOLS, name, strlen(name))) {
            program_among(words + 1, asked, refused, depth);
            unjudged(path, "what it starts is not seen", false);
        }
    } else if (is_shell) {
        if ((rest = script_of_shell(words + 1)))
            program_among(rest + 1, asked, refused, depth);
        unjudged(path, "what a shell starts is not seen", false);
    } else {
        rest = behind_tool(tool, words + 1);
        whole = *rest && strcmp(*rest, ":") && program_at(rest, asked, refused, depth + 1);
        if (!whole && words[1] && strcmp(words[1], ":")) /* alone it starts nothing */
            unjudged(path, "no program is found behind it", true);
    }
    free(facts);
    return true;
}

/* Judge the program of each part of a launch line; parts are separated by ":". Behind options that are
 * known the first word is the program. The value of another option may be the program or not: it is
 * judged, and the next executable file, too. `launcher`: "argv" where the first word is the program,
 * as srun gives it to its filter. */
static int launch(char **words, const char *launcher, const struct facts *asked)
{
    bool refused = false;
    if (!strcmp(launcher, "argv")) {
        if (*words && !program_at(words, asked, &refused, 0))
            unjudged(*words, "is no program that is found here", true);
        return refused;
    }
    int start = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (; *words; words += *words != NULL) {
        bool found = false, judged = false, unknown = false;
        const char *missed = "launch line";
        if (!strcmp(*words, ":"))
            continue;
        for (; *words && strcmp(*words, ":"); words++) {
            if (found)
                continue;
            if (**words != '-') {
                if (!(found = program_at(words, asked, &refused, 0)))
                    missed = *words;
                if (!found && !unknown)
                    break;
                continue;
            }
            const char *name = *words + strspn(*words, "-");
            int values = *name ? option_values(launcher, *words, words[1]) : 0;
            bool has_next = words[1] && strcmp(words[1], ":");
            if (has_next && values == 1 && is_among(FOLDER_OPTIONS, name, strlen(name)) &&
                chdir(words[1]))
                missed = words[1];
            if (values < 0 && has_next && *words[1] != '-') {
                unknown = true;
                judged |= program_at(words + 1, asked, &refused, 0);
                values = 1;
            }
            for (; values > 0 && words[1] && strcmp(words[1], ":"); values--)
                words++;
        }
        if (!found && !judged)
            unjudged(missed, "no program is found in the launch line", true);
        while (*words && strcmp(*words, ":"))
            words++;
        if (start >= 0 && fchdir(start))
            return refused;
    }
    return refused;
}

/* Judge the programs of a line that a shell is to run, as ssh takes it: the first word of each of its
 * commands. What quotes, variables and loops hide is not seen. */
static int shell_line(char *line, const struct facts *asked)
{
    enum { MAX_WORDS = 4096 };
    static char *words[MAX_WORDS];
    bool refused = false;
    while (*line) {
        size_t count = 0;
        char quote = 0, *here = line, *write = line, *word = line;
        bool inside = false, ends = false;
        for (; *here && !ends; here++) {
            ends = !quote && strchr(";&|()\n", *here);
            if (quote ? *here == quote : *here == '\'' || *here == '"') {
                quote = quote ? 0 : *here;
                inside = true;
            } else if (ends || (!quote && (*here == ' ' || *here == '\t'))) {
                if (inside && count + 1 < MAX_WORDS)
                    words[count++] = word;
                *write++ = 0;
                word = write = here + 1;
                inside = false;
            } else {
                if (*here == '\\' && quote != '\'' && here[1])
                    here++;
                *write++ = *here;
                inside = true;
            }
        }
        if (!ends)
            *write = 0;
        if (inside && count + 1 < MAX_WORDS)
            words[count++] = word;
        words[count] = NULL;
        char **rest = words;
        while (*rest && (strchr(*rest, '=') || !strcmp(*rest, "exec") || !strcmp(*rest, "export")))
            rest++;
        if (*rest && !strcmp(*rest, "cd") && rest[1] && chdir(rest[1]))
            unjudged(rest[1], "is no folder here", false);
        else if (*rest)
            program_at(rest, asked, &refused, 0);
        line = here;
    }
    return refused;
}

/* Return the value of a variable in an environment as /proc/PID/environ has it; NULL if unset. */
static const char *variable(const char *environment, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < size; i += strlen(environment + i) + 1)
        if (!strncmp(environment + i, name, length) && environment[i + length] == '=')
            return environment + i + length + 1;
    return NULL;
}

/* Judge a process of this job whose program was not seen before. */
static void look_at(const char *process, const char *job)
{
    static struct { dev_t device; ino_t inode; } seen[MAX_SEEN];
    static size_t seen_count;
    static char environment[1 << 17];
    static struct facts facts;
    char path[300], shown[PATH_MAX];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%.20s/environ", process);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return; /* of another user, or ended */
    ssize_t got = read(descriptor, environment, sizeof environment - 1);
    close(descriptor);
    if (got <= 0)
        return;
    environment[got] = 0;
    const char *own = variable(environment, (size_t)got, "SLURM_JOB_ID");
    snprintf(path, sizeof path, "/proc/%.20s/exe", process);
    ssize_t length = readlink(path, shown, sizeof shown - 1);
    if (!own || strcmp(own, job) || length <= 0 || stat(path, &about))
        return;
    shown[length] = 0;
    for (size_t i = 0; i < seen_count; i++)
        if (seen[i].device == about.st_dev && seen[i].inode == about.st_ino)
            return;
    if (seen_count < MAX_SEEN)
        seen[seen_count].device = about.st_dev, seen[seen_count++].inode = about.st_ino;
    const char *numbers[] = {variable(environment, (size_t)got, "SLURM_NTASKS"),
                             variable(environment, (size_t)got, "SLURM_NNODES"),
                             variable(environment, (size_t)got, "OMP_NUM_THREADS")};
    facts = (struct facts){0};
    facts.tasks = numbers[0] ? atol(numbers[0]) : 1;
    facts.nodes = numbers[1] ? atol(numbers[1]) : 1;
    facts.threads = numbers[2] ? atol(numbers[2]) : 1;
    if (read_facts(path, shown, &facts))
        judge(&facts, "watch");
}

/* Look at the processes of this job: often at first, each half a minute later on. */
static int watch(const char *process)
{
    const char *job = getenv("SLURM_JOB_ID");
    pid_t until = process && atoi(process) > 1 ? atoi(process) : getppid();
    if (!job)
        return 2;
    for (double pause = 0.1; !kill(until, 0) || errno == EPERM; pause = pause < 30 ? pause * 1.25 : 30) {
        DIR *processes = opendir("/proc");
        if (!processes)
            return 2;
        for (struct dirent *each; (each = readdir(processes));)
            if (each->d_name[0] >= '1' && each->d_name[0] <= '9')
                look_at(each->d_name, job);
        closedir(processes);
        fflush(stdout);
        struct timespec span = {(time_t)pause, (long)((pause - (double)(time_t)pause) * 1e9)};
        nanosleep(&span, NULL);
    }
    return 0;
}

/* Go on as a process with a session of its own. Slurm kills the process group of a TaskProlog when
 * it ends; so the first process waits until the second one has left the group. */
static bool leave_group(void)
{
    int ends[2];
    char none;
    if (pipe(ends))
        return false;
    pid_t child = fork();
    if (child > 0) {
        close(ends[1]);
        _exit(read(ends[0], &none, 1) != 0);
    }
    setsid();
    close(ends[0]);
    close(ends[1]);
    return child == 0;
}

int main(int count, char **words)
{
    static struct facts asked;
    const char *threads = getenv("OMP_NUM_THREADS"), *mode = count > 1 ? words[1] : "";
    const char *launcher = "";
    struct sigaction action = {.sa_handler = on_bus_error};
    sigaction(SIGBUS, &action, NULL);
    asked.tasks = asked.nodes = asked.threads = 1;
    if (threads && atol(threads) > 0)
        asked.threads = atol(threads);
    optind = 2;
    for (int option; count > 1 && (option = getopt(count, words, "+bn:N:c:l:")) != -1;) {
        long number = optarg ? atol(optarg) : 0;
        if (option == '?')
            return 2;
        if (option == 'b' && !leave_group())
            return 2;
        if (option == 'l')
            launcher = optarg;
        if (option == 'b' || option == 'l')
            continue;
        *(option == 'n' ? &asked.tasks : option == 'N' ? &asked.nodes : &asked.threads) =
            number > 0 ? number : 1;
    }
    keeps_programs = strcmp(mode, "scan") != 0;
    if (!keeps_programs)
        return scan(&asked);
    if (!strcmp(mode, "launch") && !strcmp(launcher, "shell"))
        return optind < count ? shell_line(words[optind], &asked) : 0;
    if (!strcmp(mode, "launch"))
        return launch(words + optind, launcher, &asked);
    if (!strcmp(mode, "watch"))
        return watch(words[optind]);
    fprintf(stderr, "guard: scan, launch or watch\n");
    return 2;
}
