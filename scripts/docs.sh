#!/usr/bin/env bash
# The docs: `scripts/docs.sh` builds site/index.html, which opens from the disk, and stops at a broken link.
# `scripts/docs.sh serve` shows them while they are written; `scripts/docs.sh records OUTPUTS` renews docs/records.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$root/scripts/setup.sh"
set_up docs
command=${1:-build}
case $command in
    build) cd "$root" && NO_MKDOCS_2_WARNING=1 exec "$env/bin/python" -m mkdocs build --strict ;;
    serve) cd "$root" && NO_MKDOCS_2_WARNING=1 exec "$env/bin/python" -m mkdocs serve ;;
    records) shift && exec "$env/bin/python" "$root/scripts/records.py" "$@" ;;
    *) die "$command: must be build, serve or records" ;;
esac
