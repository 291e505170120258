#!/usr/bin/env bash
# Ends what start.sh has started; the folder may be removed then.
set -uo pipefail
folder=${1:?usage: stop.sh FOLDER}
for file in "$folder"/slurmd-*.pid "$folder/slurmctld.pid"; do
    [ -f "$file" ] && kill "$(cat "$file")"
done
exit 0
