"""Tests of the limits of every check and figure, and of settings that exclude each other: refused in one
line that begins with the name of the last setting changed. Wrong types are refused in
test_every_config.py.

Declared ranges are read off the class; the tables hold the other limits.
"""

import re
from dataclasses import is_dataclass
from typing import Any

import pytest

from icl.checks.settings import ranges, validate
from icl.errors import InputError
from tests.conformance.configs import Config, class_of, configs

Changes = list[dict[str, Any]]

PROMPTS: Changes = [
    {"dim": 0}, {"context": 0}, {"context": [3, 4]}, {"eigenvalues": [1, 2]},
    {"dim": 2, "eigenvalues": [1, 0]}, {"dim": 2, "covariance": [[1, 2], [2, 1]]},
    {"dim": 2, "covariance": [[1, 0], [0, 1]], "eigenvalues": [1, 1]},
]  # fmt: skip
ON_S: Changes = [{"dim": 33}, {"samples": 999}, {"dim": 2, "distortion": [[1, 1], [1, 1]]}]
TOO_LARGE = {"dim": 3, "prior_mean_norm": 1.001e6}  # for the risk's arithmetic
AROUND_PRIOR: Changes = [
    {"dim": 0}, {"dim": 41}, {"context": 0}, {"context": [3, 4]}, {"prior_mean": [1, 2]},
    {"prior_mean_norm": -1}, {"dim": 2, "prior_mean_norm": 1, "prior_mean": [1, 2]},
]  # fmt: skip
WITH_GUESS: Changes = [
    {"guess_vector": [1, 2]}, {"guess_vector_norm": -1},
    {"dim": 2, "guess_vector_norm": 1, "guess_vector": [1, 2]}, {"guess_bias": float("inf")},
    {"guess_vector_norm": 2e6}, {"guess_bias": 2e6},
]  # fmt: skip
NO_PRIOR = {"prior_mean_norm": 0.0}
# No Gram matrix of rank dim, no problem at all, and less regularisation than rounding leaves.
LINEAR: Changes = [{"dim": 5, "context": 4}]
LOGISTIC: Changes = [{"dim": 5, "context": 4}, {"mu": 0}, {"mu": 1e-5}]
STEPS: Changes = [{"width": 10**9}, {"inversion": 0}, {"steps": 0}]

CHECKS: dict[str, Changes] = {
    "ahn/conditioning": [
        *({"layers": n} for n in (1, 5)), *({"dim": n} for n in (1, 33)), {"context": 4}, {"samples": 999},
    ],
    "ahn/critical_points": [{"layers": 1}, {"layers": 5}, {"dim": 33}, {"starts": 0}],
    "ahn/gd_plus_plus": [{"dim": 0}, {"context": 0}, {"layers": 0}, {"samples": 0}],
    "ahn/global_optimum": [
        *({"dim": n} for n in (1, 7)), *({"layers": n} for n in (1, 4)), {"starts": 0}, {"context": 10**6},
    ],
    "ahn/landscape": [
        *({"layers": n} for n in (1, 4)),
        *({"dim": 11}, {"starts": 0}, {"prompts": 9}, {"iterations": 0}, {"samples": 9}),
        *({"init_stds": sizes} for sizes in ([], [0], [0.1] * 73, "0.1", 0.1, None)),
    ],
    "ahn/large_context": [
        *({"contexts": some} for some in ([10], "ten", [10, 5], [0, 5], [1, 10**10])), {"dim": 65},
        {"dim": 2, "eigenvalues": [1, 0]},
    ],
    "ahn/last_b": [{"layers": 0}, {"samples": 0}],
    "ahn/lemma1": [*PROMPTS, {"layers": 0}, {"layers": 17}, {"samples": 0}, {"context": 10_000}],
    "ahn/lemma4": [{"layers": 1}, {"layers": 13}, {"dim": 33}, {"samples": 0}],
    "ahn/lemma5": [{"layers": 0}, {"layers": 5}, {"samples": 0}, {"context": 10_000}],
    "ahn/softmax": [
        *({"heads": heads} for heads in ([2], "two", [1, 1], [0, 1])),
        *({"samples": 10}, {"starts": 1}, {"dim": 0}, {"context": 10**6}),
    ],
    "ahn/theorem1": [{"dim": 51}],
    "ahn/theorem2": [*({"dim": n} for n in (1, 13)), {"context": 0}, {"context": 10**6}, {"starts": 0}],
    "ahn/theorem3": [*ON_S, {"layers": 0}, {"layers": 13}],
    "ahn/theorem4": [*ON_S, {"layers": 0}, {"layers": 5}, {"starts": 0}],
    "ahn/theorem5": [*({"dim": n} for n in (0, 65)), {"context": 0}, {"context": 513}, {"samples": 4999}],
    "giannou/corollaryE_2": LOGISTIC,
    "giannou/equationB_9": LOGISTIC,
    "giannou/equationC_6": [{"width": 10}, {"mu": 0}],
    "giannou/gradient_descent": [{"accuracy": 0}, {"accuracy": 0.5}],
    "giannou/inversion_steps": [
        *({"mus": some} for some in ([], 0.1, [0], [2.0])), *({"accuracies": some} for some in ([], [1e-7])),
    ],
    "giannou/degrees": [{"condition": 1.0}],
    "giannou/label_head": [{"dim": 5, "context": 5}],
    "giannou/lemmaB_8": LOGISTIC,
    "giannou/lemmaB_9": LOGISTIC,
    "giannou/lemmaB_10": LOGISTIC,
    "giannou/mask_floor": [{"dim": 5, "context": 5}, {"samples": 10**6}],
    "giannou/newton_start": [{"condition": 0.5}, {"condition": 1e4}, {"accuracy": 1e-9}],
    "giannou/order": [{"condition": float("inf")}, {"accuracy": 0}],
    "giannou/proposition3_3": [{"mu": 0}, {"mu": 1e-5}],
    "giannou/ridge": [*LINEAR, {"mu": 0}, {"mu": -1}],
    "giannou/theorem4_2": [
        *LINEAR, {"condition": float("inf")}, {"condition": 0.5},
        {"dim": 2, "context": 2, "design": [[1, 2], [2, 4]]},
        {"dim": 2, "context": 2, "design": [[1, 2, 3]]}, {"design": "none.npy"},
    ],
    "giannou/theorem5_1": [*LOGISTIC, *STEPS],
    "giannou/theorem5_2": [*LOGISTIC, *STEPS],
    "giannou/theorem5_4": [*LOGISTIC, {"steps": 0}],
    "giannou/theorem5_4_rate": LOGISTIC,
    "lds/optimum_s": [{"window": 1}, {"window": 2, "length": 3}],
    "lds/pcg": [{"window": 1}, {"window": 2, "length": 3}],
    "lds/theorem4_1": [{"setting": "e"}, {"length": 2}, {"spectrum": [1.5, 0, 0, 0, 0]}],
    "xie/gd_forward": [
        *({"eta": eta} for eta in (0, [], [1, -1], "large")),
        *({"context": 10_000}, {"samples": 0}, {"samples": 10**6}, TOO_LARGE),
    ],
    "xie/gd_lower_bound": [NO_PRIOR, TOO_LARGE],
    "xie/lemma1": [{"heads": 0}, {"heads": 10**4}, TOO_LARGE],
    "xie/lemma2": [*AROUND_PRIOR, TOO_LARGE, {"dim": 3, "prior_mean_norm": 1e300}],
    "xie/lemma3": [{"hidden": 0}, {"hidden": 10**5}, {"context": 10_000}, {"samples": 0}, TOO_LARGE],
    "xie/ltb": [NO_PRIOR, {"samples": 0}],
    "xie/prior_gap": [*WITH_GUESS, NO_PRIOR, {"guess_vector_norm": 0}, {"guess_bias": 0}, TOO_LARGE],
    "xie/theorem1": [*WITH_GUESS, {"dim": 15}, {"restarts": 0}, TOO_LARGE],
    "xie/theorem2": [
        *({"dim": dim} for dim in (0, 41)),
        *({"contexts": some} for some in ([10], 10, "10", [10, 10], [0, 10], [1, 2.5], [1, 10**12])),
        *(NO_PRIOR, {"dim": 2, "prior_mean": [0, 0]}, TOO_LARGE),
    ],
    "xie/theorem4": [{"context": 10**7}, TOO_LARGE],
}  # fmt: skip

FIGURES: dict[str, Changes] = {
    "ahn/fig3": [{"context": 0}, {"starts": 0}, {"batches": 0}],
    "ahn/fig6": [
        *({"context": context} for context in ([], [4, 4], [0], [1000])),
        *({"seeds": []}, {"lr": 0}, {"test_contexts": 0}, {"search_contexts": 0}),
    ],
    "ahn/fig7": [{"layers": layers} for layers in ([], [0], [5], [2, 2], "12")],
    "giannou/fig2": [{"layers": [1, 1]}, {"layers": [0]}, {"dim": 2, "context": 2}],
    "giannou/fig3": [{"contexts": 101}],
    "giannou/fig7": [*({"layers": some} for some in ([], [1, 1], [0])), {"seeds": [1, 1]}, {"mu": 0}],
    "giannou/fig8": [{"conditions": []}],
    "lds/extra": [{"windows": [1], "settings": ["a"]}, {"settings": ["z"]}, {"sequences": 1}],
    "lds/fig1": [
        *({"setting": "e"}, {"windows": [0]}, {"windows": [2, 2]}, {"steps": 3}),
        *({"setting": "c", "windows": [4]}, {"windows": [4], "length": 5}),
    ],
    "xie/fig1": [
        *({"squared_norms": norms} for norms in ([0, -1], [4])), *({"seeds": []}, {"dim": 0}, {"dim": 21}),
    ],
    "xie/fig2": [{"heads": [0, 1]}, {"heads": [2, 2]}, {"squared_norm": -1}, {"minibatch_steps": 0}],
    "xie/fig3": [{"heads": 0}],
    "xie/fig4": [{"squared_biases": [1, -2]}],
    "xie/fig5": [{"prompts": 1}],
    "xie/fig6": [
        *({"models": models} for models in ([], [3], ["a/x", "b/x"], ["/no/such/folder"])),
        *({"embeddings": which} for which in ("./none", None)),
        *({"data": data} for data in ("gone.csv", 3)),
        *({name: 0} for name in ("runs", "examples", "new_tokens", "batch")),
        *({"seed": -1}, {"device": "gpu"}, {"dtype": "float8"}, {"download": "yes"}),
        *({"guess": guess} for guess in ({"hiden": 3}, {"lr": -1}, 3)),
        *({"guess": {name: 0}} for name in ("hidden", "epochs", "batch", "lr")),
    ],
}  # fmt: skip


def insist(key: str, cls: Any, settings: dict[str, Any], changes: dict[str, Any]) -> None:
    name = list(changes)[-1].removesuffix("_norm")
    told = name if name == "seeds" else f"{key}.{name}"
    with pytest.raises(InputError, match=f"^{re.escape(told)}") as refusal:
        cls(**settings | changes)
    assert "\n" not in str(refusal.value)


def declared(config: Config) -> dict[str, Any]:
    cls = class_of(config.own)
    return ranges(cls) if is_dataclass(cls) else {}


@pytest.mark.parametrize("config", list(filter(declared, configs("check"))), ids=str)
def test_a_declared_range_ends_where_it_says(config: Config) -> None:
    cls = class_of(config.own)
    for name, (low, high, _) in declared(config).items():
        for value, beyond in [(low, low - 1), *([(high, high + 1)] if high is not None else [])]:
            insist("check", cls, {}, {name: beyond})
            at = object.__new__(cls)  # the other fields have their defaults
            setattr(at, name, value)
            validate(at)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_has_limits(name: str) -> None:
    cls = class_of(Config("check", name).own)
    for changes in CHECKS[name]:
        insist("check", cls, {}, changes)


@pytest.mark.parametrize("name", FIGURES)
def test_an_experiment_has_limits(name: str) -> None:
    node = dict(Config("figure", name).composed("smoke")["experiment"])
    cls = class_of(node)
    del node["_target_"]
    for changes in FIGURES[name]:
        insist("figure.experiment", cls, node, changes)
