#!/usr/bin/env bash
# The docs: `scripts/docs.sh` builds site/index.html, which opens from the disk, and stops at a broken link.
# `scripts/docs.sh serve` shows them while they are written. `scripts/docs.sh render` fills numbers, tables and the
# reference into the pages anew; `scripts/docs.sh records OUTPUTS` first renews docs/records from OUTPUTS, and with a
# Chromium the picture of the report.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$root/scripts/setup.sh"
command=${1:-build}
case $command in
    build | serve | render | records) ;;
    *) die "$command: must be build, serve, render or records" ;;
esac
set_up docs
if [ "$command" = records ]; then
    shift
    "$env/bin/python" "$root/scripts/records.py" "$@"
    (cd "$root" && "$env/bin/python" -m scripts.pages)
    page=$(CDPATH='' cd -- "${1:-outputs}" && pwd -P)/report/index.html
    for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
        if [ -f "$page" ] && command -v "$name" >/dev/null; then
            exec "$name" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,2300 \
                --user-data-dir="$(mktemp -d)" --screenshot="$root/docs/img/report.png" "file://$page"
        fi
    done
    exit
fi
export NO_MKDOCS_2_WARNING=1
cd "$root"
case $command in
    render) exec "$env/bin/python" -m scripts.pages ;;
    build) exec "$env/bin/python" -m mkdocs build --strict ;;
    serve) exec "$env/bin/python" -m mkdocs serve ;;
esac
