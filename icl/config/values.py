"""Values of settings: their content, what follows from them, and how Hydra's grammar writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.digests import file_digest
from icl.errors import InputError, whole

MOST_DEVICES = 4096  # of a node
_OF_DIM = (
    "eigenvalues", "covariance", "distortion", "task_covariance", "prior_mean", "guess_vector", "spectrum",
)  # fmt: skip
AXES = {"design": ("context", "dim"), **dict.fromkeys(_OF_DIM, ("dim",))}  # the settings of an array's axes


def resolve_seeds(seeds: Any, seed: Any) -> tuple[int, ...]:
    """`seed` if set, else `seeds`; order kept, duplicates refused."""
    chosen = [seed] if seed is not None else seeds
    if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
        raise InputError(f"seeds={chosen}: must be a list of at least one integer")
    found = [whole("seed" if seed is not None else "seeds", entry, 0) for entry in chosen]
    if len(set(found)) < len(found):
        raise InputError(f"seeds={found}: has duplicates")
    return tuple(found)


def processes(devices: Any, num_nodes: Any) -> int:
    """Return the number of processes of a run: devices (a number or a list) times nodes."""
    if isinstance(devices, Sequence) and not isinstance(devices, str) and devices:
        count = len({whole("trainer.devices", device, 0) for device in devices})
    elif isinstance(devices, int) and not isinstance(devices, bool) and devices >= 1:
        count = devices
    else:
        raise InputError(
            f"trainer.devices={devices}: must be a number of at least 1, or a list: prompts depend on it"
        )
    return whole("trainer.devices", count, 1, MOST_DEVICES) * whole("trainer.num_nodes", num_nodes, 1)


def by_content(node: Any) -> Any:
    """`node` with every .npy file named in it replaced by a digest: a matrix counts by its content."""
    if isinstance(node, Mapping):
        return {key: by_content(value) for key, value in node.items()}
    return file_digest(Path(node)) if is_array_file(node) else node


def is_array_file(value: Any) -> bool:
    """Return whether a setting names a .npy file that is there."""
    return isinstance(value, str) and value.endswith(".npy") and Path(value).is_file()


def flatten(node: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested settings by dotted key."""
    if not isinstance(node, Mapping):
        return {prefix: node}
    entries = [flatten(entry, f"{prefix}.{key}" if prefix else str(key)) for key, entry in node.items()]
    return {key: leaf for part in entries for key, leaf in part.items()}


def literal(value: Any) -> str:
    """Return a Python value in Hydra's override grammar."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(literal, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{literal(entry)}" for key, entry in value.items()) + "}"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def dims_of(typed: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings that follow from arrays that are typed, by dotted key: `check.covariance=sigma.npy`
    sets check.dim, unless it is typed, too."""
    found: dict[str, int] = {}
    for key, value in typed.items():
        group, _, name = key.partition(".")
        if group in ("task", "check", "figure") and name in AXES:
            of_file = isinstance(value, str) and value.endswith(".npy")
            shape = shape_of_file(Path(value)) if of_file else _lengths(value)
            found |= {f"{group}.{axis}": length for axis, length in zip(AXES[name], shape, strict=False)}
    return {key: length for key, length in found.items() if key not in typed}


def shape_of_file(path: Path) -> tuple[int, ...]:
    """Return the shape of the array in a .npy file, () where it cannot be read."""
    import numpy as np

    try:
        return tuple(np.load(path, "r", allow_pickle=False).shape)
    except (OSError, ValueError, EOFError, AttributeError):
        return ()


def _lengths(value: Any) -> tuple[int, ...]:
    return (len(value), *_lengths(value[0])) if isinstance(value, list) and value else ()
