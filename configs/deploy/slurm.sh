#!/usr/bin/env bash
# A cluster for as long as a Slurm job: one host a node, an engine on each, keys that nobody keeps.
#   sbatch --nodes=4 configs/deploy/slurm.sh /shared/models/llama-3.2-1b
# The job's output says how to reach it from its first node (lab serves on loopback only).
#SBATCH --job-name=lethe
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
set -euo pipefail
model=${1:?usage: sbatch --nodes=N slurm.sh MODEL [PORT]}
port=${2:-7001}
lethe=${LETHE:-lethe}
umask 077
# On a file system that all nodes see.
folder=$(mktemp -d "${SLURM_SUBMIT_DIR:?runs under sbatch}/lethe-${SLURM_JOB_ID:?runs under sbatch}-XXXXXX")
# On each node its own: where the commands of this job find its cluster.
export XDG_RUNTIME_DIR=${SLURM_TMPDIR:-/tmp}/lethe-job-$SLURM_JOB_ID
nodes=
# srun would kill its tasks at once; `lethe down` lets running requests finish.
finish() {
  if [[ -n $nodes ]] && "$lethe" down --cluster "slurm-$SLURM_JOB_ID"; then wait "$nodes" || true; fi
  rm -rf "$folder" "$XDG_RUNTIME_DIR"
}
trap finish EXIT
trap 'exit 143' TERM INT

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
{
  cat <<TOML
name = "slurm-$SLURM_JOB_ID"
profile = "lab"
[model]
path = "$(realpath "$model")"
[engines]
count = ${#hosts[@]}
placement = "spread"
[tls]
folder = "keys"
[listen]
api = "127.0.0.1:${LETHE_API_PORT:-8080}"
TOML
  for host in "${hosts[@]}"; do
    address=$(getent ahostsv4 "$host" | awk 'NR == 1 {print $1}')
    printf '[[hosts]]\nname = "%s"\naddress = "%s"\nport = %s\n' "$host" "${address:?no address of $host}" "$port"
  done
} >"$folder/cluster.toml"
"$lethe" keys init "$folder/cluster.toml" --days 30
rm "$folder/keys/ca.key" # nobody joins later

echo "On $(hostname): XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR $lethe status"

# In the background, so that this shell hears the signal that ends the job.
srun --kill-on-bad-exit=0 --export=ALL bash -c '
  mkdir -p -m 700 "$XDG_RUNTIME_DIR"
  exec "$0" up "$1" --host "$SLURMD_NODENAME"' "$lethe" "$folder/cluster.toml" &
nodes=$!
wait "$nodes"
nodes=
