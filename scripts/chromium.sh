#!/usr/bin/env bash
# Chromium for the browser tests of the report and of W&B's charts, on Debian and Ubuntu, where none is found. Run by a person: the tests
# install nothing, and are skipped where there is none; the charts also need Vega (tests/loggers/test_dashboard.py).
set -euo pipefail
say() { printf 'icl: %s\n' "$*" >&2; }

for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
    if found=$(command -v "$name"); then
        say "found $found"
        exit 0
    fi
done
if ! command -v apt-get >/dev/null; then
    say "install Chromium or Chrome as your system does, then run scripts/test.sh -m chromium"
    exit 2
fi
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update
"${as_root[@]}" apt-get install --yes --no-install-recommends chromium fonts-dejavu-core
say "now: scripts/test.sh -m chromium"
