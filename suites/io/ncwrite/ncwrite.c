/* ncwrite - rate of writing with PnetCDF, step by step, as a simulation writes its results.
 *
 * A file has one variable over an unlimited dimension; a step is the next record of it, as netCDF's
 * applications write theirs: of all ranks in one file, or of a rank in a file of its own. The format
 * is CDF-5, whose values are big-endian: turning the bytes round is in the time, as it is for others.
 * Arguments, figures, checks and exit codes: steps.h.
 *
 * Example:   mpirun -n 4 ./ncwrite -c -b 128M -s 10 -d /scratch/me
 *            total 1840.1 MiB/s, 5120.0 MiB from open to close in 2.782457 s
 */
#define _GNU_SOURCE 1 /* all of POSIX and Linux, also with -std=c11 */
#include <mpi.h>
#include <pnetcdf.h>

static const char PROBE[] = "ncwrite", EXTENSION[] = "nc";
static const char USAGE[] = "ncwrite [-l one|each] [-c] [-b bytes] [-s steps] [-m bytes] [-d directory]";

struct step { int file, variable, number; int collective; };

#include "steps.h"

/* Every call of PnetCDF goes through NC, so that a failure names the call and the place. */
#define NC(call) check_netcdf((call), #call, __LINE__)

static void check_netcdf(int code, const char *call, int line)
{
    if (code != NC_NOERR) fail("line %d: %s: %s", line, call, ncmpi_strerror(code));
}

static int make_file(const struct job *job, const char *path, MPI_Comm all)
{
    int file, dimensions[2], variable;
    MPI_Offset values = job->bytes / 8 * (job->one ? ranks : 1);
    NC(ncmpi_create(all, path, NC_NOCLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    NC(ncmpi_def_dim(file, "step", NC_UNLIMITED, &dimensions[0]));
    NC(ncmpi_def_dim(file, "place", values, &dimensions[1]));
    NC(ncmpi_def_var(file, "values", NC_UINT64, 2, dimensions, &variable));
    NC(ncmpi_enddef(file));
    return file;
}

static struct step open_step(const struct job *job, int writer, int number, bool writing)
{
    char path[PATH];
    struct step step = {.number = number, .collective = job->collective};
    MPI_Comm all = job->one ? MPI_COMM_WORLD : MPI_COMM_SELF;
    path_of(job, writer, path);
    if (writing && number == 1) step.file = make_file(job, path, all);
    else NC(ncmpi_open(all, path, writing ? NC_WRITE : NC_NOWRITE, MPI_INFO_NULL, &step.file));
    NC(ncmpi_inq_varid(step.file, "values", &step.variable));
    if (!step.collective) NC(ncmpi_begin_indep_data(step.file));
    return step;
}

static void close_step(struct step step, bool writing)
{
    if (!step.collective) NC(ncmpi_end_indep_data(step.file));
    if (writing) NC(ncmpi_sync(step.file));
    NC(ncmpi_close(step.file));
}

static void move_values(struct step step, uint64_t *values, int64_t n, int64_t place, bool writing)
{
    MPI_Offset first[] = {step.number - 1, place}, count[] = {1, n};
    unsigned long long *data = (unsigned long long *)values;
    int file = step.file, variable = step.variable;
    if (writing && step.collective) NC(ncmpi_put_vara_ulonglong_all(file, variable, first, count, data));
    else if (writing) NC(ncmpi_put_vara_ulonglong(file, variable, first, count, data));
    else if (step.collective) NC(ncmpi_get_vara_ulonglong_all(file, variable, first, count, data));
    else NC(ncmpi_get_vara_ulonglong(file, variable, first, count, data));
}

static off_t begin_of(const struct job *job, const char *path, int number)
{
    int file, variable;
    MPI_Offset begin, record;
    (void)job;
    NC(ncmpi_open(MPI_COMM_SELF, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    NC(ncmpi_inq_varid(file, "values", &variable));
    NC(ncmpi_inq_varoffset(file, variable, &begin));
    NC(ncmpi_inq_recsize(file, &record));
    NC(ncmpi_close(file));
    return begin + (number - 1) * record;
}
