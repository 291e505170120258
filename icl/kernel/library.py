"""The compiled kernel, if it is there and made from the source that is here."""

from __future__ import annotations

import ctypes
import functools

from icl.kernel.build import FOLDER, LIBRARY, source_digest

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")


class Unusable(Exception):
    """Why there is no kernel."""


class Header(ctypes.Structure):
    """`Program` of tiles.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("ops", "inputs", "lists")),
        *(
            (name, ctypes.c_int64)
            for name in (
                "n_ops", "n_inputs", "n_slots", "n_prologue", "n_persistent", "zeros", "n_zeros", "result",
                "n_gradient",
            )  # fmt: skip
        ),
    ]


@functools.cache
def library() -> ctypes.CDLL:
    """Raises Unusable."""
    path = FOLDER / LIBRARY
    if not path.exists():
        raise Unusable("it was not built (python -m icl.kernel.build says why)")
    try:
        found = ctypes.CDLL(str(path))
        found.icl_kernel_source.restype = ctypes.c_char_p
        made_from = found.icl_kernel_source().decode()
    except (OSError, AttributeError) as error:
        raise Unusable(f"{path.name} does not load: {error}") from error
    if made_from != source_digest():
        raise Unusable("it was built from another source: run python -m icl.kernel.build again")
    found.icl_kernel_run.argtypes = [
        ctypes.POINTER(Header), *[ctypes.c_int] * 3, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 3
    ]  # fmt: skip
    return found


@functools.cache
def instruction_sets() -> tuple[str, ...]:
    """Those that both the library and this processor have, the narrowest first. Raises Unusable."""
    names = (ctypes.c_char_p * len(INSTRUCTION_SETS))()
    count = library().icl_kernel_instructions(names, len(names))
    return tuple((name or b"").decode() for name in names[:count])


@functools.cache
def description() -> str:
    """`avx512`, say, or why there is none."""
    try:
        return instruction_sets()[-1]
    except Unusable as error:
        return f"none: {error}"


def is_usable() -> bool:
    return not description().startswith("none")
