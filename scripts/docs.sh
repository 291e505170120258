#!/usr/bin/env bash
# The docs: `scripts/docs.sh` builds site/index.html, which opens from the disk, and stops at a broken link.
# `scripts/docs.sh serve` shows them while they are written; `scripts/docs.sh records OUTPUTS` renews docs/records.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$root/scripts/setup.sh"
command=${1:-build}
case $command in
    build | serve | records) ;;
    *) die "$command: must be build, serve or records" ;;
esac
set_up docs
if [ "$command" = records ]; then
    shift
    exec "$env/bin/python" "$root/scripts/records.py" "$@"
fi
export NO_MKDOCS_2_WARNING=1
cd "$root"
case $command in
    build) exec "$env/bin/python" -m mkdocs build --strict ;;
    serve) exec "$env/bin/python" -m mkdocs serve ;;
esac
