/* h5write - rate of writing with parallel HDF5, step by step, as a simulation writes its results.
 *
 * Each step makes the dataset /step-N: of all ranks in one file, or of a rank in a file of its own.
 * Arguments, figures, checks and exit codes: steps.h.
 *
 * Example:   mpirun -n 4 ./h5write -c -b 128M -s 10 -d /scratch/me
 *            total 1840.1 MiB/s, 5120.0 MiB from open to close in 2.782457 s
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <hdf5.h>
#include <mpi.h>

static const char PROBE[] = "h5write", EXTENSION[] = "h5";
static const char USAGE[] = "h5write [-l one|each] [-c] [-b bytes] [-s steps] [-m bytes] [-d directory]";

struct step { hid_t file, set, access, transfer; };

#include "steps.h"

/* Every HDF5 call goes through H5: HDF5 prints its own stack of errors, and we name the call. */
#define H5(call) check_hdf5((call), #call, __LINE__)

static hid_t check_hdf5(hid_t result, const char *call, int line)
{
    if (result < 0) fail("line %d: %s failed", line, call);
    return result;
}

static hid_t access_of(const struct job *job)
{
    hid_t access = H5(H5Pcreate(H5P_FILE_ACCESS));
    H5(H5Pset_fapl_mpio(access, job->one ? MPI_COMM_WORLD : MPI_COMM_SELF, MPI_INFO_NULL));
    return access;
}

static void name_step(int number, char name[32]) { snprintf(name, 32, "/step-%d", number); }

static hid_t make_set(const struct job *job, hid_t file, const char *name)
{
    hsize_t values = (hsize_t)job->bytes / 8 * (job->one ? (hsize_t)ranks : 1);
    hid_t space = H5(H5Screate_simple(1, &values, NULL)), how = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Pset_fill_time(how, H5D_FILL_TIME_NEVER)); /* each value is written once */
    hid_t set = H5(H5Dcreate2(file, name, H5T_STD_U64LE, space, H5P_DEFAULT, how, H5P_DEFAULT));
    H5(H5Pclose(how));
    H5(H5Sclose(space));
    return set;
}

static struct step open_step(const struct job *job, int writer, int number, bool writing)
{
    char path[PATH], name[32];
    path_of(job, writer, path);
    name_step(number, name);
    struct step step = {.access = access_of(job), .transfer = H5(H5Pcreate(H5P_DATASET_XFER))};
    H5(H5Pset_dxpl_mpio(step.transfer, job->collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
    if (writing && number == 1) step.file = H5(H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, step.access));
    else step.file = H5(H5Fopen(path, writing ? H5F_ACC_RDWR : H5F_ACC_RDONLY, step.access));
    step.set = writing ? make_set(job, step.file, name) : H5(H5Dopen2(step.file, name, H5P_DEFAULT));
    return step;
}

static void close_step(struct step step, bool writing)
{
    H5(H5Dclose(step.set));
    if (writing) H5(H5Fflush(step.file, H5F_SCOPE_GLOBAL));
    H5(H5Fclose(step.file));
    H5(H5Pclose(step.access));
    H5(H5Pclose(step.transfer));
}

static void move_values(struct step step, uint64_t *values, int64_t n, int64_t place, bool writing)
{
    hsize_t count = (hsize_t)n, first = (hsize_t)place;
    hid_t in_file = H5(H5Dget_space(step.set)), in_memory = H5(H5Screate_simple(1, &count, NULL));
    H5(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL));
    if (writing) H5(H5Dwrite(step.set, H5T_NATIVE_UINT64, in_memory, in_file, step.transfer, values));
    else H5(H5Dread(step.set, H5T_NATIVE_UINT64, in_memory, in_file, step.transfer, values));
    H5(H5Sclose(in_memory));
    H5(H5Sclose(in_file));
}

static off_t begin_of(const struct job *job, const char *path, int number)
{
    char name[32];
    (void)job;
    name_step(number, name);
    hid_t file = H5(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)), set = H5(H5Dopen2(file, name, H5P_DEFAULT));
    off_t begin = (off_t)H5Dget_offset(set);
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    return begin;
}
