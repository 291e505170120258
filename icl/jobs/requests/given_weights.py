"""Load the weights that a check judges, from a finished run or a `.npz` file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.config.values import shape_of_file
from icl.digests import file_digest, sha256_of
from icl.errors import InputError
from icl.runs.code import targets
from icl.runs.documents import arrays_in, to_json

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


def described(key: str, path: Path) -> dict[str, Any]:
    """Return a given file by content: its key, path, SHA-256 and the shape of its array, or of each."""
    import numpy as np

    shape: Any = shape_of_file(path)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as stored:
            shape = {name: stored[name].shape for name in stored.files}
    return {"key": key, "path": str(path.absolute()), "sha256": sha256_of(path), "shape": to_json(shape)}


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

    def refuse(reason: str) -> InputError:
        return InputError(f"check.weights={path}: {reason}")

    try:
        arrays = arrays_in(path.read_bytes())
    except Exception as error:  # zipfile, zlib and numpy have no common one
        raise refuse(f"not a readable .npz file ({error})") from None
    activation = str(arrays.pop("activation", "identity"))
    family = _FAMILIES.get(frozenset(arrays))
    if family is None:
        raise refuse(
            f"must hold A, A and B, or P and Q, and no other arrays; has {', '.join(sorted(arrays))}"
        )
    if not hasattr(check, "prompts"):
        raise refuse("this statement judges runs alone, which know the law of their prompts")
    law = check.prompts()
    width = law.dim + (family == "full")
    matrices = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise refuse(f"{name} must hold finite numbers")
        if array.ndim == 4 and len(array) != 1:
            raise refuse(f"{name} has {len(array)} seeds; one set of weights at a time")
        if array.ndim not in (3, 4) or array.shape[-2:] != (width, width) or not array.size:
            raise refuse(f"{name} must have the shape (layers, {width}, {width}), has {array.shape}")
        matrices[name] = torch.from_numpy(array.astype(np.float64)).reshape(1, *array.shape[-3:])
    depth = len(matrices[min(matrices)][0])
    if family == "sparse_ab":
        effective = max(depth - 1, len(matrices["B"][0]) - 1)  # the last B has no effect
        matrices["B"] = matrices["B"][:, :effective]
    for name, matrix in matrices.items():
        wanted = depth - (name == "B")
        if len(matrix[0]) != wanted:
            raise refuse(f"{name} has {len(matrix[0])} layers, must have {wanted}")
    return Weights(family, matrices, law, activation)


def family_name(cls: type) -> str:
    from icl.models import Full, LinearTransformerBlock, MultiHead, ReducedLSA, SparseA, SparseAB, YqLSA

    known: dict[type, str] = {SparseA: "sparse_a", SparseAB: "sparse_ab", Full: "full", YqLSA: "yq_lsa"}
    known |= {MultiHead: "multihead", LinearTransformerBlock: "ltb", ReducedLSA: "reduced_lsa"}
    return known.get(cls, cls.__name__)
