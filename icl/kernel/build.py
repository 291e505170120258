"""Compiles the kernel next to its source: `python -m icl.kernel.build`, and hatch_build.py where pip
installs.

Imports nothing of icl, so that it runs before icl is installed.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCES = ("tiles.h", "tiles.cpp", "driver.cpp")
LIBRARY = "_kernel.so"  # by this name on every system: ctypes loads it, Python does not import it
COMPILERS = ("c++", "g++", "clang++")
FLAGS: tuple[str, ...] = ("-std=c++17", "-O3", "-fPIC", "-pthread")
FLAGS += ("-fno-math-errno", "-ffp-contract=fast", "-fno-tree-vectorize")
X86 = {
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"),
}
PATIENCE = 300  # seconds


class NotBuilt(Exception):
    """Why there is no kernel."""


def source_digest() -> str:
    """Return the digest of the sources here; a library made from others is not used."""
    return hashlib.sha256(b"\0".join((FOLDER / name).read_bytes() for name in SOURCES)).hexdigest()[:16]


def built() -> Path:
    """Return the library of these sources, made if there is none that loads. Raises NotBuilt."""
    library = FOLDER / LIBRARY
    return library if library_digest(library) == source_digest() else build()


def library_digest(library: Path) -> str | None:
    """Return the digest of a library's sources; None where it does not load."""
    try:
        loaded = ctypes.CDLL(str(library))
        loaded.icl_kernel_source.restype = ctypes.c_char_p
        return str(loaded.icl_kernel_source().decode())
    except (OSError, AttributeError):
        return None


def build(extra: Sequence[str] = (), target: Path = FOLDER / LIBRARY) -> Path:
    """Return the library, made with the compiler that CXX names or the first found. Raises NotBuilt."""
    compiler = _compiler()
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    common = [*compiler, *FLAGS, *extra]
    with tempfile.TemporaryDirectory(prefix="icl-kernel-") as folder:
        digest = f'-DSOURCE_DIGEST="{source_digest()}"'
        jobs = [("driver", [digest, "-DWITH_X86"] if x86 else [digest], "driver.cpp")]
        wide = {"avx2": 32, "avx512": 64} if x86 else {}
        for name, width in {"baseline": 16, **wide}.items():
            flags = [f"-DNAMESPACE={name}", f"-DBYTES={width}", *X86.get(name, ())]
            jobs.append((name, flags, "tiles.cpp"))
        objects = [str(Path(folder) / f"{name}.o") for name, _, _ in jobs]
        commands = [
            [*common, *flags, "-c", str(FOLDER / source), "-o", made]
            for (_, flags, source), made in zip(jobs, objects, strict=True)
        ]
        _run_all(commands)
        linked = Path(folder) / LIBRARY
        _run_all([[*common, "-shared", *objects, "-o", str(linked)]])
        # Renamed into place: a process that has the old one open keeps it.
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        try:
            shutil.copyfile(linked, fresh)
            os.replace(fresh, target)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise NotBuilt(f"{target}: {error.strerror}") from error
    return target


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CXX", ""))
    if named and shutil.which(named[0]):
        return named
    if named:
        raise NotBuilt(f"CXX={named[0]}: no such compiler")
    if os.name != "posix":
        raise NotBuilt("only GCC and Clang compile it, on Linux and macOS")
    found = next((path for path in map(shutil.which, COMPILERS) if path), None)
    if found is None:
        raise NotBuilt(f"no C++ compiler ({', '.join(COMPILERS)}, or CXX)")
    return [found]


def _run_all(commands: Sequence[Sequence[str]]) -> None:
    """Run the commands in parallel."""
    try:
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for command in commands
        ]
    except OSError as error:
        raise NotBuilt(f"{commands[0][0]}: {error.strerror}") from error
    failures = []
    for process in started:
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        if process.returncode:
            failures.append(f"{commands[0][0]} exits {process.returncode}: {output.strip()[-2000:]}")
    if failures:
        raise NotBuilt(failures[0])


if __name__ == "__main__":
    try:
        print(build(sys.argv[1:]))
    except NotBuilt as error:
        sys.exit(f"no kernel: {error}")
