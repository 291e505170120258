#!/usr/bin/env bash
# The kernel's tests, those of its normal numbers among them, with the kernel compiled for the address and
# undefined-behaviour sanitizers (GCC, Linux).
# Extra arguments go to pytest. At the end the kernel is compiled as before.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd -P)
python=$root/.venv/bin/python
compiler=${CXX:-g++}
cd "$root"
restore() { "$python" -m icl.kernel.build; }
trap restore EXIT
CXX=$compiler "$python" -m icl.kernel.build -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
# Python keeps what it allocates, and says so at its end: leaks are not looked for.
ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so.6)" \
    "$python" -m pytest -p no:cacheprovider tests/kernel "$@"
