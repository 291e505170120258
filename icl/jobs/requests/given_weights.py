"""Load the weights that a check judges, from a finished run or a `.npz` file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.digests import file_digest
from icl.errors import InputError
from icl.runs.code import targets
from icl.runs.documents import arrays_in

if TYPE_CHECKING:
    from icl.checks.given import Weights
    from icl.models import Transformer
    from icl.tasks import Law

_FAMILIES = {frozenset("A"): "sparse_a", frozenset("AB"): "sparse_ab", frozenset("PQ"): "full"}


def identity(weights: Any) -> tuple[Any, list[str]]:
    """Return what given weights are by content, and the classes that rebuild a run's model and law: none for
    a file, which uses the check's law."""
    path = _path(weights)
    if path.suffix == ".npz":
        return file_digest(path), []
    from icl.runs.record import load_run

    run = load_run(path)
    return run.content_id, targets(run.config.get("task"), run.config.get("model"))


def file_of(weights: Any) -> Path:
    """Return the file that holds given weights."""
    path = _path(weights)
    return path if path.suffix == ".npz" else path / "weights.npz"


def load(weights: Any, check: Any) -> Weights:
    """Return a run's weights with the law they were trained on, or a file's with the check's law."""
    path = _path(weights)
    return of_file(path, check) if path.suffix == ".npz" else of_run(path)


def _path(weights: Any) -> Path:
    path = Path(str(weights)).expanduser()
    if not (path.is_file() if path.suffix == ".npz" else path.is_dir()):
        raise InputError(f"check.weights={weights}: no such run folder or .npz file")
    return path


def of_run(path: Path) -> Weights:
    from icl.training.load import load_run

    run = load_run(path)
    return of_model(run.transformer, run.law)


def of_model(model: Transformer, law: Law) -> Weights:
    """Return a model's weights with the law they were trained on."""
    from icl.checks.given import Weights

    parametrization = model.parametrization
    return Weights(family_name(type(parametrization)), parametrization.matrices(), law, model.activation)


def of_file(path: Path, check: Any) -> Weights:
    import numpy as np
    import torch

    from icl.checks.given import Weights

    def require(condition: Any, reason: str) -> None:
        if not condition:
            raise InputError(f"check.weights={path}: {reason}")

    try:
        arrays = arrays_in(path.read_bytes())
    except Exception as error:  # zipfile, zlib and numpy have no common one
        raise InputError(f"check.weights={path}: not a readable .npz file ({error})") from None
    activation = str(arrays.pop("activation", "identity"))
    family, names = _FAMILIES.get(frozenset(arrays), ""), ", ".join(sorted(arrays))
    require(family, f"must hold A, A and B, or P and Q, and no other arrays; has {names}")
    known = hasattr(check, "prompts")
    require(known, "this statement judges runs alone, which know the law of their prompts")
    law = check.prompts()
    width = law.dim + (family == "full")
    matrices = {}
    for name, array in arrays.items():
        finite = array.dtype.kind in "iuf" and np.isfinite(array).all()
        require(finite, f"{name} must hold finite numbers")
        shaped = array.ndim in (3, 4) and array.shape[-2:] == (width, width) and array.size
        require(shaped, f"{name} must have the shape (layers, {width}, {width}), has {array.shape}")
        alone = array.ndim != 4 or len(array) == 1
        require(alone, f"{name} has {len(array)} seeds; one set of weights at a time")
        matrices[name] = torch.from_numpy(array.astype(np.float64)).reshape(1, *array.shape[-3:])
    depth = len(matrices[min(matrices)][0])
    if family == "sparse_ab":
        effective = max(depth - 1, len(matrices["B"][0]) - 1)  # the last B has no effect
        matrices["B"] = matrices["B"][:, :effective]
    for name, matrix in matrices.items():
        wanted = depth - (name == "B")
        require(len(matrix[0]) == wanted, f"{name} has {len(matrix[0])} layers, must have {wanted}")
    return Weights(family, matrices, law, activation)


def family_name(cls: type) -> str:
    """Return the name of a parametrization: yq_lsa of YqLSA."""
    return re.sub("(?<=[a-z])(?=[A-Z]+$)", "_", cls.__name__).lower()
