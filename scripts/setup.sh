# Sourced by the scripts beside it, which first set `root` to the repository. `set_up` leaves in `env` the environment
# to run in, `.venv` as a rule, made or renewed if constraints.txt or pyproject.toml ask for it. All it says goes to stderr.

say() { printf 'icl: %s\n' "$*" >&2; }
die() { say "$@"; exit 2; }

supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }

# `holds ENVIRONMENT MODULE`
holds() {
    "$1/bin/python" -I -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))' "$2" 2>/dev/null
}

# Candidates are run, not looked up: a version manager's shim exists for versions that it then refuses to start.
find_python() {
    local candidate lame=""
    for candidate in python3 python python3.13 python3.12 python3.11; do
        supported "$candidate" || continue
        if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            python=$candidate
            return
        fi
        lame=${lame:-$("$candidate" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')}
    done
    [ -z "$lame" ] || die "$lame cannot make virtual environments; on Debian and Ubuntu: apt install $lame-venv"
    die "needs Python 3.11, 3.12 or 3.13, and found none. Install one (for example from python.org) and run this again."
}

# An active environment that already holds a torch is used as it is, and its torch is kept.
active_with_torch() {
    local active=${VIRTUAL_ENV:-}
    [ -n "$active" ] && [ -x "$active/bin/python" ] || return 1
    [ "$(cd "$active" && pwd -P)" != "$root/.venv" ] || return 1
    supported "$active/bin/python" && holds "$active" pip && holds "$active" torch
}

# constraints.txt without torch and what torch itself requires, and with the torch that is there.
keep_torch() {
    "$env/bin/python" -I - "$root/constraints.txt" "$env/icl-constraints.txt" <<'PY'
import importlib.metadata as metadata
import re
import sys

def name(line):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]*", line)[0]).lower()

torchs = {name(line) for line in metadata.requires("torch") or []} | {"torch", "triton"}
with open(sys.argv[1]) as source, open(sys.argv[2], "w") as kept:
    kept.writelines(line for line in source if name(line) not in torchs and not name(line).startswith(("nvidia-", "cuda-")))
    kept.write(f"torch=={metadata.version('torch')}\n")
PY
}

# One set-up at a time. The lock belongs to the open file, so it ends with the last process that has it, killed or not.
lock() {
    local any=$env/bin/python
    "$any" -c '' 2>/dev/null || { find_python && any=$python; }
    [ -w "$root" ] || die "cannot write to $root"
    exec 9>"$root/.venv.lock"
    "$any" -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("icl: waiting for another set-up to end", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)'
}

# One line that says how long it has taken and what was last written to the log; it ends with the script.
tick() {
    while kill -0 $$ 2>/dev/null; do
        printf '\r\033[Kicl: %ss %s' "$((SECONDS - $2))" "$(tail -n 1 "$1" 2>/dev/null | tr -d '\r' | cut -c 1-64)" >&2
        sleep 1
    done
}

# `quietly COMMAND...`: on a terminal a line of progress; its output goes to a log, which is kept if it fails.
quietly() {
    local log ticker="" status=0
    log=$(mktemp "${TMPDIR:-/tmp}/icl-setup.XXXXXX")
    if [ -t 2 ]; then
        tick "$log" "$SECONDS" 9>&- &
        ticker=$!
    fi
    "$@" >"$log" 2>&1 || status=$?
    if [ -n "$ticker" ]; then
        kill "$ticker" 2>/dev/null && wait "$ticker" 2>/dev/null || true
        printf '\r\033[K' >&2
    fi
    if [ "$status" -eq 0 ]; then
        rm -f "$log"
    else
        tail -n 20 "$log" >&2
        say "the whole output is in $log"
    fi
    return "$status"
}

install() {
    local constraints
    constraints=$("$env/bin/python" -I -c 'import pathlib, sys; print(pathlib.Path(sys.argv[1]).as_uri())' "$1")
    # Through the environment, the pins also hold where pip builds a package (a URL, since pip splits this at spaces).
    # What is compiled is what is imported, on import: of 16,000 files most never are.
    (cd "$root" && PIP_CONSTRAINT=$constraints PIP_BUILD_CONSTRAINT=$constraints PIP_USER=0 PIP_NO_INPUT=1 \
        PIP_DISABLE_PIP_VERSION_CHECK=1 quietly "$env/bin/python" -I -m pip install --no-compile -e "$2")
}

stamp() {
    printf '%s\n%s\n' "$root" "$1"
    cat "$root/constraints.txt" "$root/pyproject.toml"
    cat "$root"/icl/kernel/*.cpp "$root"/icl/kernel/*.h 2>/dev/null || true
}

# `installed ""` holds for an environment with the tools of the tests too.
installed() {
    local extra
    for extra in "$1" dev; do
        if [ "$(cat "$env/icl-installed" 2>/dev/null)" = "$(stamp "$extra")" ]; then
            "$env/bin/python" -c '' 2>/dev/null
            return
        fi
    done
    return 1
}

# A .venv made here and not brought to its end is made anew. One that somebody else made, perhaps around a torch of
# their own, is filled and never thrown away while its Python runs.
make_venv() {
    holds "$env" pip && { [ ! -e "$env/icl-made" ] || [ -e "$env/icl-installed" ]; } && return
    find_python
    rm -rf "$env"
    mkdir "$env" && touch "$env/icl-made" || die "cannot write to $root"
    quietly "$python" -m venv "$env" || die "$python could not make $env (the reason is above)"
}

# `set_up ""` installs the program, `set_up dev` the tools of the tests too.
set_up() {
    local constraints=$root/constraints.txt
    env=$root/.venv
    if active_with_torch; then
        env=$(cd "$VIRTUAL_ENV" && pwd -P)
    fi
    installed "$1" && return
    lock
    installed "$1" && return

    trap 'exit 130' INT
    [ "$env" != "$root/.venv" ] || make_venv
    if [ ! -e "$env/icl-made" ] && holds "$env" torch; then
        say "installing the pinned packages into $env, whose torch is kept"
        keep_torch
        constraints=$env/icl-constraints.txt
    else
        say "installing the pinned packages into $env (minutes, the first time)"
    fi
    # Without this file the environment counts as half-made, so it goes first and comes back last.
    [ ! -e "$env/icl-installed" ] || mv "$env/icl-installed" "$env/icl-replaced"
    if ! install "$constraints" ".${1:+[$1]}"; then
        [ ! -e "$env/icl-replaced" ] || mv "$env/icl-replaced" "$env/icl-installed"
        die "could not install the packages (the reason is above)"
    fi
    stamp "$1" >"$env/icl-installed.new"
    mv "$env/icl-installed.new" "$env/icl-installed"
    rm -f "$env/icl-replaced"
    trap - INT
    exec 9>&-
}
