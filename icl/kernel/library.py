"""The compiled kernel, if it is there and made from the source that is here."""

import ctypes
import functools

from icl.kernel.build import FOLDER, LIBRARY, library_digest, source_digest

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
LISTS = ("ops", "inputs", "lists")
NUMBERS: tuple[str, ...] = ("n_ops", "n_inputs", "n_slots", "n_prologue", "n_persistent")
NUMBERS += ("zeros", "n_zeros", "result", "n_gradient")


class Unusable(Exception):
    """Why there is no kernel."""


class Header(ctypes.Structure):
    """`Program` of tiles.h."""

    _fields_ = [*((name, ctypes.c_void_p) for name in LISTS), *((name, ctypes.c_int64) for name in NUMBERS)]


@functools.cache
def library() -> ctypes.CDLL:
    """Load a library; raise Unusable if that fails."""
    path = FOLDER / LIBRARY
    if not path.exists():
        raise Unusable("it was not built: python -m icl.kernel.build shows why")
    digest = library_digest(path)
    if digest is None:
        raise Unusable(f"{path.name} does not load here: run python -m icl.kernel.build")
    if digest != source_digest():
        raise Unusable("it was built from another source: run python -m icl.kernel.build")
    found = ctypes.CDLL(str(path))
    found.icl_kernel_run.argtypes = [
        ctypes.POINTER(Header), *[ctypes.c_int] * 3, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 3
    ]  # fmt: skip
    found.icl_kernel_normals.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int64]
    return found


@functools.cache
def instruction_sets() -> tuple[str, ...]:
    """Return instruction sets of both library and processor, narrowest first. Raises Unusable."""
    names = (ctypes.c_char_p * len(INSTRUCTION_SETS))()
    count = library().icl_kernel_instructions(names, len(names))
    return tuple((name or b"").decode() for name in names[:count])


def instructions() -> str | None:
    """Return the set in use; None where there is no kernel."""
    try:
        return instruction_sets()[-1]
    except Unusable:
        return None


def why_none() -> str | None:
    try:
        library()
    except Unusable as error:
        return str(error)
    return None
