#!/usr/bin/env bash
# Every check, every figure, then the report: sets up if needed, then `icl reproduce` with the arguments given here.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$root/scripts/setup.sh"
set_up ""
exec "$env/bin/icl" reproduce "$@"
