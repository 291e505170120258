"""Load the weights that a check judges, from a finished run or a `.npz` file."""

from __future__ import annotations

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


def identity(weights: Any) -> tuple[Any, list[str]]:
    """Return what given weights are by content, and the classes that rebuild a run's model and law: none for
    a file, which uses the check's law."""
    path = _path(weights)
    if path.suffix == ".npz":
        return file_digest(path), []
    from icl.runs.record import load_run

    run = load_run(path)
    return run.content_id, targets(run.config.get("task"), run.config.get("model"))


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
    from icl.models.stored import family_name

    parametrization = model.parametrization
    return Weights(family_name(type(parametrization)), parametrization.matrices(), law, model.activation)


def of_file(path: Path, check: Any) -> Weights:
    from icl.checks.given import Weights
    from icl.models.stored import matrices_of

    try:
        arrays = arrays_in(path.read_bytes())
    except Exception as error:  # zipfile, zlib and numpy have no common one
        raise InputError(f"check.weights={path}: not a readable .npz file ({error})") from None
    if not hasattr(check, "prompts"):
        raise InputError(
            f"check.weights={path}: this statement judges runs alone, which know the law of their prompts"
        )
    law, activation = check.prompts(), str(arrays.pop("activation", "identity"))
    try:
        return Weights(*matrices_of(arrays, law.dim), law, activation)
    except InputError as error:
        raise InputError(f"check.weights={path}: {error}") from None
