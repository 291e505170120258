#!/usr/bin/env bash
# Lint, format, types, tests: sets up if needed. Arguments go to pytest (paths are relative to the repository).
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$root/scripts/setup.sh"
set_up dev
cd "$root"

# Compiled once: a process that may not keep what it compiles spends ten seconds on the libraries alone.
unset PYTHONDONTWRITEBYTECODE

# Types are checked beside the tests.
types=$(mktemp "${TMPDIR:-/tmp}/icl-types.XXXXXX")
trap 'rm -f "$types"' EXIT
"$env/bin/python" -m mypy >"$types" 2>&1 &
mypy=$!

failed=""
"$env/bin/python" -m ruff check . || failed="ruff check"
"$env/bin/python" -m ruff format --check . || failed="$failed${failed:+, }ruff format"

# One test process for each core, which computes with one thread. Each takes ten seconds to import what the tests do.
# Who has nothing left takes from the others.
status=0
workers=$("$env/bin/python" -c "import os; print(min(os.cpu_count() or 1, 4))")
OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 "$env/bin/python" -m pytest -n "$workers" --dist worksteal "$@" || status=$?

wait "$mypy" || {
    cat "$types"
    failed="$failed${failed:+, }mypy"
}
if [ -n "$failed" ]; then
    printf 'icl: failed beside the tests: %s\n' "$failed" >&2
    [ "$status" -ne 0 ] || status=1
fi
exit "$status"
