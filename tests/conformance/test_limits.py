"""Tests of the limits of every check and figure, and of settings that exclude each other: refused in one
line that begins with the name of the last setting changed. Wrong types are refused in
test_every_config.py.

Ranges are declared in statements; the tables hold the other limits.
"""

import re
from typing import Any

import pytest

from icl.errors import InputError
from icl.figures.look import KEYS
from tests.conformance.configs import Config, class_of

Changes = list[dict[str, Any]]

PROMPTS: Changes = [
    {"dim": 0}, {"context": 0}, {"context": [3, 4]}, {"eigenvalues": [1, 2]},
    {"dim": 2, "eigenvalues": [1, 0]}, {"dim": 2, "covariance": [[1, 2], [2, 1]]},
    {"dim": 2, "covariance": [[1, 0], [0, 1]], "eigenvalues": [1, 1]},
]  # fmt: skip
WITH_GUESS: Changes = [
    {"guess_vector": [1, 2]}, {"guess_vector_norm": -1},
    {"dim": 2, "guess_vector_norm": 1, "guess_vector": [1, 2]}, {"guess_bias": float("inf")},
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
    "ahn/critical_points": [
        {"layers": 1}, {"layers": 5}, {"dim": 33}, {"starts": 0}, {"context": 10**5},
    ],
    "ahn/gd_plus_plus": [{"dim": 0}, {"dim": 33}, {"context": 0}, {"context": 1001}, {"layers": 0}],
    "ahn/global_optimum": [
        *({"dim": n} for n in (1, 9)), *({"layers": n} for n in (1, 4)), {"context": 10**6},
    ],
    "ahn/landscape": [
        *({"layers": n} for n in (1, 4)),
        *({"dim": 11}, {"starts": 0}, {"prompts": 9}, {"iterations": 0}, {"samples": 9}),
        *({"init_stds": sizes} for sizes in ([], [0], [0.1] * 73, "0.1", 0.1, None)),
    ],
    "ahn/lemma1": [{"layers": 0}, {"layers": 17}, {"dim": 65}, {"context": 1001}, {"seed": -1}],
    "ahn/lemma4": [{"layers": 1}, {"layers": 13}, {"dim": 33}, {"context": 1001}],
    "ahn/lemma5": [{"layers": 0}, {"layers": 5}, {"dim": 33}, {"context": 10_000}],
    "ahn/softmax": [
        *({"heads": heads} for heads in ([2], "two", [1, 1], [0, 1])),
        *({"samples": 10}, {"starts": 1}, {"dim": 0}, {"context": 10**6}),
    ],
    "ahn/theorem1": [
        *PROMPTS, {"dim": 201}, {"dim": 2, "covariance": [[1, 1], [1, 1]]},
        {"dim": 2, "covariance": [[-1, 0], [0, -1]]}, {"dim": 2, "covariance": [[2, 1], [0, 2]]},
        {"dim": 3, "covariance": [[1, 0, 0], [0, -1, 0], [0, 0, -1]]},
    ],
    "ahn/theorem2": [*({"dim": n} for n in (1, 33)), {"context": 0}],
    "ahn/theorem3": [*PROMPTS, {"dim": 33}, {"layers": 0}, {"layers": 13}],
    "ahn/theorem4": [*PROMPTS, {"dim": 33}, {"layers": 0}, {"layers": 5}, {"starts": 0}, {"context": 10**5}],
    "ahn/theorem5": [*({"dim": n} for n in (0, 65)), {"context": 0}],
    "giannou/gradient_descent": [{"accuracy": 0}, {"accuracy": 0.5}],
    "giannou/degrees": [{"condition": 1.0}],
    "giannou/label_head": [{"dim": 5, "context": 5}],
    "giannou/lemmaB_8": [{"mu": 0}, {"problems": 0}],
    "giannou/lemmaB_9": [{"mu": 0}, {"steps": 0}],
    "giannou/mask_floor": [{"dim": 5, "context": 5}, {"samples": 10**6}],
    "giannou/order": [
        {"condition": float("inf")}, {"condition": 0.5}, {"accuracy": 0}, {"accuracy": 1},
        *({"mus": some} for some in ([], 0.1, [0], [2.0])), *({"accuracies": some} for some in ([], [1.5])),
    ],
    "giannou/proposition3_3": [{"mu": 0}, {"mu": float("inf")}],
    "giannou/theorem4_2": [
        *LINEAR, {"condition": float("inf")}, {"condition": 0.5}, {"mu": -1},
        {"dim": 2, "context": 2, "design": [[1, 2], [2, 4]]},
        {"dim": 2, "context": 2, "design": [[1, 2, 3]]}, {"design": "none.npy"},
    ],
    "giannou/theorem5_4": [{"mu": 1e-5}, {"problems": 0}],
    "giannou/theorem5_1": [*LOGISTIC, *STEPS],
    "giannou/theorem5_2": [*LOGISTIC, *STEPS],
    "lds/optimum_s": [{"window": 1}, {"window": 2, "length": 3}],
    "lds/pcg": [{"window": 1}, {"window": 2, "length": 3}, {"setting": "c"}],
    "lds/theorem4_1": [{"setting": "e"}, {"length": 2}, {"spectrum": [1.5, 0, 0, 0, 0]}],
    "looped/flow_finds_it": [
        {"dim": 3}, {"starts": 0}, {"starts": 1001}, {"steps_taken": 0}, {"init_std": 0}, {"seed": -1},
    ],
    "looped/gain": [{"dim": 0}, {"dim": 21}, {"layers": 9}, {"dim": 3, "layers": 6}, {"eigenvalues": [1]}],
    "looped/limit_gain": [{"dim": 3}, {"layers": 1}, {"layers": 9}, {"context": 0}],
    "looped/rates": [{"dim": 3}, {"layers": 2}, {"speed": 0}],
    "looped/loops_beyond_training": [{"dim": 3}, {"layers": 1}, {"most": 2}, {"most": 13}],
    "looped/minimiser_symmetric": [{"context": 0}, {"layers": 0}, {"covariance": [[1, 2], [2, 1]]}],
    "looped/scalar_is_saddle": [{"dim": 1}, {"dim": 21}, {"layers": 9}, {"most": 1001}],
    "looped/shift": [{"scales": []}, {"scales": [0]}, {"stretches": "wide"}, {"stretches": [-1]}],
    "looped/symmetric_optimum_is_scalar": [{"dim": 1}, {"dim": 21}, {"layers": 0}],
    "xie/gd_lower_bound": [NO_PRIOR],
    "xie/ltb": [NO_PRIOR],
    "xie/prior_gap": [*WITH_GUESS, NO_PRIOR, {"guess_vector_norm": 0}, {"guess_bias": 0}],
    "xie/theorem1": [*WITH_GUESS, {"dim": 61}],
    "xie/theorem2": [
        *({"contexts": some} for some in ([], 10, "10", [0, 10], [1, 2.5])),
        *(NO_PRIOR, {"dim": 2, "prior_mean": [0, 0]}),
    ],
    "xie/theorem4": [*({"eta": eta} for eta in ([], [1, "large"], "large"))],
}  # fmt: skip

FIGURES: dict[str, Changes] = {
    "ahn/fig1": [{"layers": 13}, {"steps": 1.5}],
    "ahn/fig2": [{"lr": 0}, {"seeds": [1, 1]}],
    "ahn/fig3": [{"context": 0}, {"starts": 0}, {"batches": 0}],
    "ahn/fig4": [{"layers": 1}],  # (11) has a B in all layers but the last
    "ahn/fig6": [
        *({"context": context} for context in ([], [4, 4], [0], [1000])), {"init_stds": [0.1, 0.1]},
        *({"seeds": []}, {"lr": 0}, {"test_contexts": 0}, {"search_contexts": 0}),
    ],
    "ahn/fig7": [{"layers": layers} for layers in ([], [0], [5], [2, 2], "12")],
    "depth/fig1": [{"trained": [0]}, {"dim": 1}, {"steps": 7}],
    "depth/fig2": [{"nu": 0}, {"beta": -1}],
    "depth/fig3": [{"layers": 1}, {"apart": 0}],
    "depth/fig4": [{"doublings": 2}],
    "giannou/fig2": [{"layers": [1, 1]}, {"layers": [0]}, {"dim": 2, "context": 2}],
    "giannou/fig3": [{"contexts": 101}],
    "giannou/fig7": [*({"layers": some} for some in ([], [1, 1], [0])), {"seeds": [1, 1]}, {"mu": 0}],
    "giannou/fig8": [{"conditions": []}, {"grown": False, "tilted": False, "starts": 2},
                     {"grown": False, "starts": 1, "tilted": True}],
    "lds/extra": [{"windows": [1]}, {"settings": ["z"]}, {"settings": []}, {"sequences": 1}],
    "lds/fig1": [
        *({"setting": "e"}, {"windows": [0]}, {"windows": [2, 2]}, {"steps": 3}),
        *({"setting": "c", "windows": [4]}, {"windows": [4], "length": 5}),
    ],
    "looped/fig1": [{"contexts": [20, 20]}, {"loops": []}],
    "looped/fig2": [{"dims": [1]}, {"loops": [6]}],
    "looped/fig4": [{"at_test": 2}],
    "looped/fig5": [{"loops": [1, 2]}, {"sizes": [-1]}],
    "lu/fig1": [{"dims": [10, 6]}, {"draws": 1}],
    "lu/fig2": [{"kappas": [[0.1]]}, {"draws": [4]}],
    "lu/fig3": [{"alpha_most": 1e303}, {"errors": ["icl", "ridge", "icl"]}],
    "lu/fig4": [{"rho": 0}],
    "xie/fig1": [
        *({"squared_norms": norms} for norms in ([0, -1], [4])), *({"seeds": []}, {"dim": 0}, {"dim": 21}),
    ],
    "xie/fig2": [{"heads": [0, 1]}, {"heads": [2, 2]}, {"squared_norm": -1}, {"minibatch_steps": 0}],
    "xie/fig3": [{"heads": 0}],
    "xie/fig4": [{"squared_biases": [1, -2]}],
    "xie/fig5": [{"prompts": 1}],
}  # fmt: skip


def insist(key: str, cls: Any, settings: dict[str, Any], changes: dict[str, Any]) -> None:
    name = list(changes)[-1].removesuffix("_norm")
    told = name if name == "seeds" else f"{key}.{name}"
    with pytest.raises(InputError, match=f"^{re.escape(told)}") as refusal:
        cls(**settings | changes)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_has_limits(name: str) -> None:
    cls = class_of(Config("check", name).own)
    for changes in CHECKS[name]:
        insist("check", cls, {}, changes)


@pytest.mark.parametrize("name", FIGURES)
def test_an_experiment_has_limits(name: str) -> None:
    composed = Config("figure", name).composed("smoke")
    cls = class_of(composed)
    node = {key: value for key, value in composed.items() if key not in ("_target_", "caption", *KEYS)}
    for changes in FIGURES[name]:
        insist("figure", cls, node, changes)
