"""The estimator of the risk that `train.estimator` names, of those the law has for the model."""

from icl.errors import InputError, nearest
from icl.models import Transformer
from icl.tasks.estimators import PopulationRisk
from icl.tasks.law import Estimator, Law

POPULATION = "population"  # the law's exact risk; nothing is drawn


def make_estimator(name: str, model: Transformer, law: Law) -> Estimator:
    """Return the estimator of this name for this model."""
    offered = law.estimators(model)
    if name in offered:
        return offered[name]()
    usable = f"train.estimator={' or '.join(offered)}"
    if name == POPULATION:
        exact = law.exact_risk(model)
        if exact is None:
            raise InputError(
                f"train.estimator={name} needs a risk in closed form: {law.exact_where}; use {usable}"
            )
        return PopulationRisk(exact)
    where = f"{type(law).__name__} and model.path={model.path}"
    raise InputError(f"train.estimator={name}: not with {where}; use {usable}{nearest(name, offered)}")
