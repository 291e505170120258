"""Training that begins with easier prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icl.errors import InputError, whole
from icl.training.hooks import RunCallback

if TYPE_CHECKING:
    from icl.training.trainer import RunComponents


class Curriculum(RunCallback):
    """More coordinates of w and more examples every `every` steps, up to the task's own.

    As published with giannou: dimension 2 to 10 by 1 and points 11 to 51 by 5, the query among them, every
    5,000 steps; only w is cut, x keeps all its coordinates. What is drawn is a function of the step, so a
    run that resumes goes on with the same prompts. `every`: null for no curriculum.
    """

    role = "trains"

    def __init__(
        self,
        every: int | None = 5000,
        dims: int = 2,
        dims_by: int = 1,
        points: int = 10,
        points_by: int = 5,
    ) -> None:
        self.every = None if every is None else whole("Curriculum.every", every, 1)
        self.dims, self.dims_by = whole("Curriculum.dims", dims, 1), whole("Curriculum.dims_by", dims_by, 0)
        self.points = whole("Curriculum.points", points, 1)
        self.points_by = whole("Curriculum.points_by", points_by, 0)

    def stage_law(self, step: int, law: Any) -> Any:
        if self.every is None:
            return law
        stage = step // self.every
        dims, points = self.dims + stage * self.dims_by, self.points + stage * self.points_by
        return law.restricted(min(dims, law.dim), min(points, *law.context_R))

    def validate_run(self, run: RunComponents, replicas: int) -> None:
        """Refuse a law that has no easier prompts."""
        if self.every is not None and not hasattr(run.law, "restricted"):
            raise InputError(
                f"callbacks.curriculum: {type(run.law).__name__} has no easier prompts; set every to null"
            )
