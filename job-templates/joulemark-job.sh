# What job templates have in common: cores, GPUs, MPI, repetitions, where results go. Templates source it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=bash
#
# All templates have these knobs, from the environment:
#   JM_THREADS         threads of each task (default: the cores that it has; hardware threads are no cores)
#   JM_RANKS_PER_NODE  ranks of MPI (default: sbatch's --ntasks or --ntasks-per-node; else as many as cores, over
#                      JM_THREADS, or of a variant that has GPUs and MPI as many as GPUs)
#   JM_MPI             srun's --mpi for ranks (default: the site's MpiDefault; pmix where that is none)
#   JM_GPUS_PER_TASK   srun's --gpus-per-task for ranks (default: sbatch's; else all see all GPUs and take them in turn)
#   JM_GPU_BIND        srun's --gpu-bind for ranks, such as closest (default: Slurm's)
#   JM_SRUN            more options of srun (default none)
#   JM_REPEAT          how often all steps are run, each time as steps of their own (default 1)
#   JM_ARRAY           of an array of jobs (sbatch --array=0-2): one setting for each, "JM_THREADS=1 JM_THREADS=2 JM_THREADS=4"
#   JOULEMARK_RESULTS  folder of the cooked and raw output (default: where sbatch was called)
#   JOULEMARK_MODULES  folder for `module use` (default: the modules are among the site's)
#   JM_MODULES         modules to load before the benchmark's, which may be among them: an MPI's, a compiler's, hydro/0.2.0-zen3-cuda
#                      (default: openmpi, where the benchmark's is not there without)
#   OMP_PLACES, OMP_PROC_BIND  (default: cores and close, where Slurm binds tasks to cores)
#
# A heterogeneous job (sbatch OPTIONS : OPTIONS TEMPLATE) runs each step on one component after the other, and ranks of
# MPI on all of them together; app, hpl, scaling and thermal refuse one. What a template calls is at the end: jm_load, jm_run, jm_alone, jm_ranks, jm_srun, jm_lengths.

set -eo pipefail

if [[ -n ${JM_ARRAY:-} ]]; then
    read -ra jm_settings <<<"$JM_ARRAY"
    if [[ -z ${SLURM_ARRAY_TASK_ID:-} || ${jm_settings[SLURM_ARRAY_TASK_ID]:-} != *=* ]]; then
        echo "JM_ARRAY='$JM_ARRAY': no NAME=VALUE for task ${SLURM_ARRAY_TASK_ID:-(no array)}:" \
            "submit with --array=0-$((${#jm_settings[@]} - 1))" >&2
        exit 2
    fi
    export "${jm_settings[SLURM_ARRAY_TASK_ID]}"
fi

for jm_knob in JM_THREADS JM_RANKS_PER_NODE JM_REPEAT; do
    if [[ -n ${!jm_knob:-} && ! ${!jm_knob} =~ ^[1-9][0-9]{0,8}$ ]]; then
        echo "$jm_knob='${!jm_knob}': must be a whole number from 1 on" >&2
        exit 2
    fi
done

if [[ -n ${JOULEMARK_MODULES:-} ]]; then module use "$JOULEMARK_MODULES"; fi
JOULEMARK_RESULTS=$(realpath "${JOULEMARK_RESULTS:-$SLURM_SUBMIT_DIR}")
export JOULEMARK_RESULTS
jm_repetition=1
read -ra jm_more <<<"${JM_SRUN:-}"

# ---- What Slurm says --------------------------------------------------------------------------------

# A key of slurm.conf.
jm_config() {
    scontrol show config | awk -v key="$1" '$1 == key { print $3 }'
}

# The first nodes of a component of a heterogeneous job (else 0), and what the job has on each: CPUs, MiB.
jm_allocated() {
    scontrol --details show job "$SLURM_JOB_ID" | awk -v RS= -v component="$1" '
        /HetJobOffset=/ && $0 !~ "HetJobOffset=" component "[ \n]" { next }
        match($0, /Nodes=[^ ]+ CPU_IDs=[^ ]+ Mem=[0-9]+/) && !found++ {
            split(substr($0, RSTART, RLENGTH), word, /[= ]/)
            ranges = split(word[4], range, ",")
            for (i = 1; i <= ranges; i++)
                cpus += split(range[i], end, "-") == 2 ? end[2] - end[1] + 1 : 1
            print word[2], cpus, word[6]
        }'
}

# Cores that the job has on the first node of a component. Slurm's variables count CPUs, which are cores or hardware
# threads by the job's options and the node's configuration; scontrol numbers threads.
jm_cores() {
    local nodes cpus
    read -r nodes cpus _ <<<"$(jm_allocated "$1")"
    scontrol show node "$(scontrol show hostnames "$nodes" | head -n 1)" | tr ' ' '\n' |
        awk -F= -v cpus="${cpus:?"scontrol --details show job $SLURM_JOB_ID tells no CPU_IDs"}" '
            { value[$1] = $2 }
            END {
                of_a_core = value["ThreadsPerCore"]
                print int((cpus + of_a_core - 1) / of_a_core)
            }'
}

# Ranks that no launcher bound would all begin at the node's first core, by OMP_PROC_BIND: without
# task/affinity threads float, as results then say.
jm_bind=()
if [[ $(jm_config TaskPlugin) == *affinity* ]]; then
    jm_bind=(--cpu-bind=cores)
    export OMP_PLACES=${OMP_PLACES:-cores} OMP_PROC_BIND=${OMP_PROC_BIND:-close}
fi
# Another component's nodes may be others than this one.
if [[ -n ${SLURM_HET_SIZE:-} || $(scontrol show node "$SLURMD_NODENAME") != *ThreadsPerCore=1[!0-9]* ]]; then
    jm_bind+=(--threads-per-core=1) # --hint=nomultithread, which srun does not take beside --cpu-bind
fi

# For templates that need nodes of one kind.
jm_refuse_heterogeneous() {
    if [[ -n ${SLURM_HET_SIZE:-} ]]; then
        echo "$SLURM_JOB_NAME: a heterogeneous job: submit it for nodes of one kind" >&2
        exit 2
    fi
}

# Whether all of a job's tasks share a variant's work, by MPI; else it is one task's.
jm_has_ranks() {
    [[ $1 == @(mpi*|fftw-mpi|pdgemm|pdgesv|*-remote|*-direct) ]]
}

# ---- What templates call ----------------------------------------------------------------------------

# Loads a benchmark's module, whose name has a prefix where other software has it, too; one that is loaded stays.
jm_load() {
    local name=$1 before
    case $1 in qcd | thermal | triad) name=jm-$1 ;; esac
    read -ra before <<<"${JM_MODULES:-}"
    if ((${#before[@]} == 0)) && ! module is-avail "$name"; then before=(openmpi); fi
    if ((${#before[@]} > 0)); then module load "${before[@]}"; fi
    if ! module is-loaded "$name"; then module load "$name"; fi
}

# srun's own word for it names neither.
jm_warn_of_threads() {
    if ((${JM_THREADS:-0} > $1)); then echo "JM_THREADS='$JM_THREADS': the job has $1 cores on a node" >&2; fi
}

# Chooses one task on one node, of the COMPONENT of a heterogeneous job (else 0): srun's options into
# jm_step, the task's threads into jm_threads.
jm_alone() {
    local cores
    cores=$(jm_cores "$1")
    jm_threads=${JM_THREADS:-$cores}
    jm_warn_of_threads "$cores"
    jm_step=(--nodes=1 --ntasks=1 --cpus-per-task="$jm_threads" "${jm_bind[@]}")
    if [[ -n ${SLURM_HET_SIZE:-} ]]; then jm_step+=(--het-group="$1"); fi
    jm_step+=("${jm_more[@]}")
}

# Likewise the ranks of a VARIANT on so many NODES; how many into jm_tasks.
jm_ranks() {
    local variant=$1 nodes=$2 cores on_a_node
    jm_step=(--mpi="${JM_MPI:-$(jm_config MpiDefault | sed -E 's/none|\(null\)/pmix/')}")
    if [[ -n ${SLURM_HET_SIZE:-} ]]; then
        jm_threads=${JM_THREADS:-1}
        jm_step+=(--het-group="0-$((SLURM_HET_SIZE - 1))")
    else
        cores=$(jm_cores 0)
        jm_warn_of_threads "$cores"
        on_a_node=$((cores / ${JM_THREADS:-1}))
        if [[ $variant == *-@(remote|direct) && $variant != mpi* ]]; then on_a_node=${SLURM_GPUS_ON_NODE:-1}; fi
        if [[ -n ${JM_RANKS_PER_NODE:-} ]]; then
            jm_tasks=$((nodes * JM_RANKS_PER_NODE))
        elif [[ -n ${SLURM_NTASKS:-} ]]; then
            jm_tasks=$((SLURM_NTASKS * nodes / SLURM_JOB_NUM_NODES))
            if ((jm_tasks < nodes)); then jm_tasks=$nodes; fi
        else
            jm_tasks=$((nodes * (on_a_node > 0 ? on_a_node : 1)))
        fi
        on_a_node=$(((jm_tasks + nodes - 1) / nodes))
        jm_threads=${JM_THREADS:-$((cores > on_a_node ? cores / on_a_node : 1))}
        jm_step+=(--nodes="$nodes" --ntasks="$jm_tasks")
    fi
    jm_step+=(--cpus-per-task="$jm_threads" "${jm_bind[@]}")
    if [[ -n ${JM_GPUS_PER_TASK:-} ]]; then jm_step+=(--gpus-per-task="$JM_GPUS_PER_TASK"); fi
    if [[ -n ${JM_GPU_BIND:-} ]]; then jm_step+=(--gpu-bind="$JM_GPU_BIND"); fi
    jm_step+=("${jm_more[@]}")
}

# Runs PROGRAM OPTION... as jm_step has it; the cooked output's file begins with NAME, the raw one's has LABEL, too.
jm_srun() {
    local name=$1 label=$2
    shift 2
    if ((jm_repetition > 1)); then label+=.$jm_repetition; fi
    srun "${jm_step[@]}" "$@" --threads "$jm_threads" \
        --cooked "$JOULEMARK_RESULTS/$name.$SLURM_JOB_ID.cooked.jsonl" \
        --raw "$JOULEMARK_RESULTS/$name.$SLURM_JOB_ID.$label.raw.txt"
}

# Runs a PROGRAM's VARIANTS with OPTION..., a step each, all of it JM_REPEAT times; all append to one cooked file. One of
# a program with several benchmarks is "PROGRAM NAME", and its results' files begin with PROGRAM-NAME.
jm_run() {
    local name=${1// /-} variants=$2 program variant component status=0
    read -ra program <<<"$1"
    shift 2
    for jm_repetition in $(seq "${JM_REPEAT:-1}"); do
        for variant in $variants; do
            if jm_has_ranks "$variant"; then
                jm_ranks "$variant" "$SLURM_JOB_NUM_NODES"
                jm_srun "$name" "$variant" "${program[@]}" --variant "$variant" "$@" || status=$?
                continue
            fi
            for ((component = 0; component < ${SLURM_HET_SIZE:-1}; component++)); do
                jm_alone "$component"
                jm_srun "$name" "$variant${SLURM_HET_SIZE:+.$component}" "${program[@]}" --variant "$variant" "$@" || status=$?
            done
        done
    done
    return "$status"
}

# Bytes of the last caches of the CPUs that this script may use, all that the job has here; 0: Linux does not tell.
jm_cache_bytes() {
    local range cpu caches shared size
    for range in $(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , ' '); do
        for cpu in $(seq "${range%-*}" "${range#*-}"); do
            caches=(/sys/devices/system/cpu/cpu"$cpu"/cache/index*/size)
            if [[ ! -e ${caches[-1]} ]]; then continue; fi
            read -r size <"${caches[-1]}"
            read -r shared <"${caches[-1]%size}shared_cpu_list"
            echo "$shared $size"
        done
    done | sort -u | awk '{ bytes += 1024 * $2 } END { printf "%.0f\n", bytes }'
}

# The length at which each of so many VECTORS of doubles has four times the bytes of those caches on so many NODES (1) that
# share it, as STREAM demands; less where all of them would be more than half of the free memory, or of the job's, on
# as many, or on so FEW of these.
jm_longest() {
    local mib nodes=${2:-1}
    read -r _ _ mib <<<"$(jm_allocated 0)"
    awk -v vectors="$1" -v nodes="$nodes" -v few="${3:-$nodes}" -v caches="$(jm_cache_bytes)" -v mib="$mib" '
        $1 == "MemAvailable:" {
            longest = nodes * (caches > 0 ? 4 * caches / 8 : 16777216)
            memory = mib > 0 && 1024 * mib < $2 ? 1048576 * mib : 1024 * $2
            most = few * memory / 2 / (8 * vectors)
            printf "%.0f\n", 1024 * int((longest < most ? longest : most) / 1024)
        }' /proc/meminfo
}

# A list of lengths of so many VECTORS, FROM one on by a FACTOR to the longest; where each of the VARIANTS has ranks, which
# share the vectors, to that of all nodes.
jm_lengths() {
    local vectors=$1 length=$2 factor=$3 variants=$4 nodes=$SLURM_JOB_NUM_NODES variant longest
    for variant in $variants; do
        if ! jm_has_ranks "$variant"; then nodes=1; fi
    done
    longest=$(jm_longest "$vectors" "$nodes")
    for (( ; length < longest; length *= factor)); do printf '%s,' "$length"; done
    echo "$longest"
}
