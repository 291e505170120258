#!/usr/bin/env bash
# The kernel's tests with the kernel compiled for arm64 (NEON) and run under qemu
# (apt-get install g++-aarch64-linux-gnu qemu-user). Extra arguments go to pytest.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd -P)
python=$root/.venv/bin/python
compiler=${CXX:-aarch64-linux-gnu-g++}
cd "$root"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
read -r -a flags <<<"$("$python" -c 'from icl.kernel.build import FLAGS; print(*FLAGS)')"
"$compiler" "${flags[@]}" -Iicl/kernel -static -DNAMESPACE=baseline -DBYTES=16 -DSOURCE_DIGEST='"arm64"' \
    icl/kernel/tiles.cpp icl/kernel/driver.cpp tests/kernel/serve.cpp -o "$folder/serve"
ICL_KERNEL_PROCESS="qemu-aarch64 $folder/serve" "$python" -m pytest -p no:cacheprovider tests/kernel "$@"
