# What NWChem's output does not say in one line: the energy of one molecule; the task's wall seconds for each
# iteration (the times beside the iterations are of the CPU alone, in tenths); and the share of the integrals that
# are computed again in each iteration, as they are not kept on disk.
BEGIN { again = "100%" }
/^ +Total SCF energy =/ { energy = $5 }
/^ +[0-9]+ +-[0-9.]+ +[0-9.]+D[-+][0-9]+ / { iterations++ }
/^ *Task +times +cpu:/ { wall = $NF + 0 }
/^ *#quartets/ { again = $0; sub(/.*#direct = */, "", again) }
END {
    if (energy == "" || !iterations) exit 1
    printf "energy of a molecule: %.7f hartree\n", energy / copies ^ 3
    printf "seconds of an iteration: %.4f\n", wall / iterations
    printf "integrals computed again: %.1f %%\n", again
}
