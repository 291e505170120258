#!/usr/bin/env bash
# A throw-away Slurm of two nodes on this machine, for the tests marked slurm. Nothing is installed: Debian's or
# Ubuntu's packages are unpacked into a folder, and its daemons run as whoever calls this, without munge.
#
#     tests/slurm/start.sh FOLDER      fetches what is missing, starts it
#     ICL_SLURM=FOLDER python -m pytest -m slurm
#     tests/slurm/stop.sh FOLDER
set -euo pipefail
folder=$(mkdir -p "${1:?usage: start.sh FOLDER}" && cd "$1" && pwd)
packages="slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 libhwloc15 liblua5.1-0"

if [ ! -x "$folder/slurm/usr/bin/srun" ]; then
    command -v apt-get dpkg >/dev/null || { echo "start.sh: needs apt-get and dpkg" >&2; exit 2; }
    mkdir -p "$folder/packages"
    # shellcheck disable=SC2086
    (cd "$folder/packages" && apt-get download $packages)
    for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/slurm"; done
fi

libraries=$(dirname "$(find "$folder/slurm" -name select_cons_tres.so)")
name=$(hostname)
memory=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
mkdir -p "$folder/state" "$folder/spool" "$folder/log"
cat >"$folder/slurm.conf" <<CONF
ClusterName=throwaway
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=26817
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PluginDir=$libraries
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
ReturnToService=2
KillWait=10
# A job that is queued again waits until its credentials have expired, else two minutes.
AuthInfo=cred_expire=5
SlurmdParameters=config_overrides
MinJobAge=600
NodeName=node[1-2] NodeHostname=$name NodeAddr=127.0.0.1 Port=[26818-26819] CPUs=4 RealMemory=$memory State=UNKNOWN
PartitionName=tests Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
cat >"$folder/environment" <<ENVIRONMENT
export SLURM_CONF="$folder/slurm.conf"
export LD_LIBRARY_PATH="$(dirname "$libraries"):$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export PATH="$folder/slurm/usr/bin:$folder/slurm/usr/sbin:\$PATH"
ENVIRONMENT
# shellcheck disable=SC1091
. "$folder/environment"

slurmctld=$(command -v slurmctld-wlm || command -v slurmctld)
slurmd=$(command -v slurmd-wlm || command -v slurmd)
stepd=$(command -v slurmstepd-wlm || command -v slurmstepd)
"$slurmctld" -c
for node in node1 node2; do
    mkdir -p "$folder/spool/$node"
    "$slurmd" -N "$node" -d "$stepd"
done
for _ in $(seq 60); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && { sinfo; exit 0; }
    sleep 0.5
done
echo "start.sh: the nodes did not come up; see $folder/log" >&2
exit 1
