/* What the words of a launch line are: options of a launcher with their values, and tools that
 * start a program.
 *
 * Sources: Open MPI 4.1 mpirun(1) and the options of PRRTE 3 (Open MPI 5), MPICH 4 and Intel MPI
 * (Hydra), srun(1) of Slurm 22.05 to 24.05, aprun(1), jsrun(1); coreutils, util-linux, numactl(8).
 */

/* Names are between blanks. */
static bool is_among(const char *names, const char *word, size_t length)
{
    for (const char *here = names; length && (here = strstr(here, " ")); here++)
        if (!strncmp(here + 1, word, length) && here[1 + length] == ' ')
            return true;
    return false;
}

/* ---- options of launchers ---- */

/* Of Open MPI, PRRTE, MPICH and Intel MPI: with one or two dashes before them. */
static const char MPI_ONE[] =
    " n np c N H host hostfile default-hostfile add-host add-hostfile machinefile f hosts hostlist"
    " machine machines machinelist x wd wdir path prefix pmixprefix app am amca tune bind-to map-by"
    " rank-by rankfile rf ppr npernode npersocket cpus-per-proc cpus-per-rank cpu-list cpu-set"
    " stdin output output-filename output-directory report-uri report-pid report-events timeout"
    " max-restarts max-vm-size launch-agent personality ompi-server hnp debugger cf cartofile xterm"
    " xml-file mca-base-env-list stream-buffering display runtime-options dvm dvm-uri dvm-uri-file"
    " pid namespace pset daemonize-uri rankmap ppn perhost ppr-node grr genvlist envlist configfile"
    " launcher launcher-exec bootstrap bootstrap-exec rmk topolib binding membind demux iface"
    " localhost nameserver order-nodes usize outfile-pattern errfile-pattern prepend-pattern outfile"
    " errfile output-from gpus-per-proc gpu-subdevs-per-proc g ranks-per-proc env-file gtool"
    " gtoolfile nodelist spawn-timeout preload-files exec-agent gpu-support num-connect-attempts"
    " keepalive umask arch soft file cpu-bind mem-bind gpu-bind depth rlimits pmi host-list r trace-pt2pt bootstrap-exec-args ";
static const char MPI_TWO[] = " mca gmca omca gomca prtemca gprtemca pmixmca gpmixmca ";
static const char MPI_ENVIRONMENT[] = " genv env "; /* NAME=VALUE, or NAME VALUE */
static const char MPI_NONE[] =
    " h help V version v verbose q quiet line-buffer label exclusive s l rr debug debug-devel debug-daemons"
    " debug-daemons-file allow-run-as-root oversubscribe nooversubscribe bynode byslot bycore"
    " bind-to-core bind-to-socket bind-to-none pernode nolocal novm noprefix no-prefix"
    " enable-recovery disable-recovery continuous display-map display-devel-map display-allocation"
    " display-devel-allocation display-topo display-diffable-map display-topology do-not-launch"
    " do-not-resolve report-bindings report-state-on-timeout report-child-jobs-separately"
    " get-stack-traces index-argv-by-rank tag-output timestamp-output xml show-progress tv"
    " merge-stderr-to-stdout use-hwthread-cpus use-regexp leave-session-attached preload-binary"
    " output-proctable set-cwd-to-session-dir set-sid fwd-mpirun-port enable-instant-on-support"
    " forward-signals no-ready-msg do-not-connect stop-on-exec stop-in-init stop-in-app"
    " genvall genvnone envall envnone enable-x disable-x prepend-rank print-rank-map"
    " print-all-exitcodes profile info skip-launch-node hybrid-hosts pmi-port disable-auto-cleanup"
    " enable-auto-cleanup disable-hostname-propagation enable-hostname-propagation ilp64 check_mpi"
    " static_mpi nolocal noconf silent-abort use-app-topology ";

static const char FOLDER_OPTIONS[] = " wdir wd chdir D "; /* relative paths are below their value */

static const char SRUN_LETTERS[] = "ABCcDdeFGiJLMmNnopqrSTtWwx"; /* with a value */
static const char SRUN_OPTIONAL[] = "IKk";                       /* perhaps with one, in the word */
static const char SRUN_ONE[] =
    " accel-bind account acctg-freq bb bbf bcast-exclude begin chdir clusters cluster-constraint"
    " comment constraint container container-id core-spec cores-per-socket cpu-bind cpu-freq"
    " cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude"
    " export extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket"
    " gpus-per-task gres gres-flags het-group hint input job-name jobid licenses mail-type mail-user"
    " mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network nodefile"
    " nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket"
    " ntasks-per-tres open-mode oom-kill-step output partition power prefer priority profile prolog"
    " qos relative reservation resources segment signal slurmd-debug sockets-per-node stepmgr"
    " switches task-epilog task-prolog thread-spec threads threads-per-core time time-min tmp"
    " treewidth tres-bind tres-per-job tres-per-task uid wait wckey ";

static const char APRUN_ONE[] =
    " n N d j S sn sl cc cp L l m p r t e a F M D C R pes pes-per-node depth CPUs"
    " pes-per-numa-node numa-nodes-per-node sl-list cpu-binding cpu-binding-file node-list"
    " node-list-file memory-per-pe protection-domain specialized-cpus cpu-time-limit"
    " environment-override architecture access-mode mpmd-env p-governor p-state debug relaunch ";
static const char APRUN_NONE[] =
    " b B q T v V h z ss bypass-app-transfer batch-args quiet sync-output strict-memory-containment"
    " zone-sort reconnect help version ";

static const char JSRUN_ONE[] =
    " n nrs a tasks_per_rs c cpu_per_rs g gpu_per_rs b bind d launch_distribution l"
    " latency_priority p np r rs_per_host K rs_per_socket m memory_per_rs e stdio_mode E env D"
    " env_eval F env_file h chdir k stdio_stderr o stdio_stdout t stdio_input M smpiargs f appfile A"
    " use_spindle U erf_input H hosts launch_node_task x X exit_on_error Y P pre_post_exec J"
    " use_resources L use_reservation Z bind_policy ";
static const char JSRUN_NONE[] = " i immediate S save_resources u use_gpu_only v V version help ";

/* Return how many words behind an option of srun are its values: -n 4, -n4, --ntasks 4. A
 * beginning of a long name is the name (getopt_long(3)). */
static int srun_values(const char *word)
{
    if (word[1] == '-') {
        char start[80];
        int length = snprintf(start, sizeof start, " %.70s", word + 2);
        return length > 2 && strstr(SRUN_ONE, start) ? 1 : 0;
    }
    for (const char *letter = word + 1; *letter; letter++)
        if (strchr(SRUN_LETTERS, *letter))
            return letter[1] ? 0 : 1;
        else if (strchr(SRUN_OPTIONAL, *letter))
            return 0;
    return 0;
}

/* Return the same for names in a list; -4 for -n4; -1 for a name that is in neither list. */
static int listed_values(const char *word, const char *ones, const char *none)
{
    const char *name = word + 1 + (word[1] == '-');
    size_t length = strlen(name);
    char letter[2] = {word[1], 0};
    if (is_among(ones, name, length))
        return 1;
    if (is_among(none, name, length))
        return 0;
    return word[1] != '-' && word[2] && strchr("0123456789.:", word[2]) && is_among(ones, letter, 1)
               ? 0
               : -1;
}

/* Return how many words that follow an option are its values; -1: the option is not known.
 * `launcher`: srun, mpirun, mpiexec, aprun, jsrun; "": any of them. */
static int option_values(const char *launcher, const char *word, const char *next)
{
    const char *name = word + 1 + (word[1] == '-');
    int found;
    if (strchr(name, '='))
        return 0;
    if (!strcmp(launcher, "srun"))
        return srun_values(word);
    if (!strcmp(launcher, "aprun"))
        return listed_values(word, APRUN_ONE, APRUN_NONE);
    if (!strcmp(launcher, "jsrun"))
        return listed_values(word, JSRUN_ONE, JSRUN_NONE);
    if (is_among(MPI_TWO, name, strlen(name)))
        return 2;
    if (is_among(MPI_ENVIRONMENT, name, strlen(name)))
        return next && strchr(next, '=') ? 1 : 2;
    found = listed_values(word, MPI_ONE, MPI_NONE);
    if (found >= 0 || !strncmp(launcher, "mpi", 3))
        return found;
    found = listed_values(word, APRUN_ONE, APRUN_NONE);
    if (found < 0 && word[1] == '-' && srun_values(word) == 1)
        return 1;
    if (found < 0 && word[1] != '-' && strchr(SRUN_LETTERS, word[1]))
        return srun_values(word);
    return found < 0 ? listed_values(word, JSRUN_ONE, JSRUN_NONE) : found;
}

/* ---- tools that start a program ---- */

struct tool {
    const char *name, *letters, *ones; /* short and long options that have a value */
    int operands;                      /* words before the program */
};

static const struct tool TOOLS[] = {
    {"env", "uC", " unset chdir argv0 ", 0},
    {"taskset", "", " ", 1},
    {"numactl", "ipPmNCcwLOSf", " interleave preferred preferred-many membind cpunodebind physcpubind"
     " cpubind weighted-interleave length offset shm shmid shmmode file ", 0},
    {"time", "fo", " format output ", 0},
    {"timeout", "ks", " kill-after signal ", 1},
    {"nice", "n", " adjustment ", 0},
    {"ionice", "cn", " class classdata ", 0},
    {"chrt", "TPD", " sched-runtime sched-period sched-deadline ", 1},
    {"stdbuf", "ioe", " input output error ", 0},
    {"nohup", "", " ", 0},
    {"setsid", "", " ", 0},
    {"setarch", "", " ", 0},
    {"linux32", "", " ", 0},
    {"linux64", "", " ", 0},
    {"uname26", "", " ", 0},
    {"i386", "", " ", 0},
    {"x86_64", "", " ", 0},
    {"job.bind", "", " ", 0}, /* scripts of Seatrial, in the run's directory */
    {"job.gpus", "", " ", 0},
    {"job.container", "", " ", 0},
    {"job.pattern", "", " ", 0},
    {"job.threads", "", " ", 0},
};
static const struct tool LOADER = {
    "ld-", "", " library-path preload audit argv0 inhibit-rpath glibc-hwcaps-prepend"
    " glibc-hwcaps-mask ", 0};

/* Tools whose options are not known here. */
static const char OPEN_TOOLS[] =
    " apptainer singularity shifter sarus ch-run enroot podman podman-hpc docker charliecloud strace"
    " ltrace gdb cuda-gdb valgrind perf vtune amplxe-cl advisor inspxe-cl nsys ncu nvprof rocprof"
    " rocprofv2 rocprofv3 compute-sanitizer cuda-memcheck hwloc-bind likwid-pin likwid-perfctr"
    " map ddt forge totalview tau_exec catchsegv xvfb-run unshare chroot systemd-run sudo ";
static const char SHELLS[] = " sh bash dash ash ksh mksh zsh csh tcsh busybox ";

static const struct tool *tool_of(const char *name)
{
    for (size_t i = 0; i < sizeof TOOLS / sizeof *TOOLS; i++)
        if (!strcmp(name, TOOLS[i].name))
            return &TOOLS[i];
    return strncmp(name, "ld-linux", 8) && strncmp(name, "ld-musl", 7) && strncmp(name, "ld.so", 5)
               ? NULL
               : &LOADER;
}

/* Return the words behind a tool's options and operands: the program that it starts. They are empty
 * where it starts none that is seen here (env -S 'LINE', taskset -p). */
static char **behind_tool(const struct tool *tool, char **words)
{
    bool is_env = !strcmp(tool->name, "env"), ends = false;
    static char *nothing[] = {NULL};
    if (!strcmp(tool->name, "setarch") && *words && **words != '-')
        words++; /* an architecture */
    for (; !ends && *words && **words == '-' && (is_env || (*words)[1]); words++) {
        char *word = *words, *equals = strchr(word, '=');
        bool has_value = false;
        ends = !strcmp(word, "--");
        if (is_env && (!strncmp(word, "--split", 7) || (word[1] != '-' && strchr(word, 'S'))))
            return nothing;
        if (!strncmp(word, "--", 2))
            has_value = !equals && is_among(tool->ones, word + 2, strlen(word + 2));
        else
            for (char *letter = word + 1; *letter && !has_value; letter++) {
                if (*letter == 'p' && (!strcmp(tool->name, "taskset") || !strcmp(tool->name, "ionice")))
                    return nothing; /* of a process that runs already */
                if (strchr(tool->letters, *letter)) {
                    has_value = !letter[1];
                    break;
                }
            }
        if (has_value && words[1])
            words++;
    }
    while (is_env && *words && strchr(*words, '='))
        words++;
    for (int i = 0; i < tool->operands && *words; i++)
        words++;
    return words;
}

/* Return the script that a shell is given, NULL where it is given a line (-c) or reads one. */
static char **script_of_shell(char **words)
{
    for (; *words && (**words == '-' || **words == '+'); words++) {
        if (words[0][1] != '-' && **words == '-' && strchr(*words, 'c'))
            return NULL;
        if (words[0][1] != '-' && strchr("oO", words[0][strlen(*words) - 1]) && words[1])
            words++;
        if (!strcmp(*words, "--rcfile") || !strcmp(*words, "--init-file"))
            words += words[1] != NULL;
    }
    return *words ? words : NULL;
}
