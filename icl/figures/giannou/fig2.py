"""Figure 2 of giannou: test loss of LSA by layers, of Newton's iteration by steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from icl import quantiles
from icl.figures.claims import Claim, ClaimNumbers, all_of, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.giannou import regression
from icl.figures.giannou.regression import HALF, LEVEL, NEAR, START_SAID, Arrays, Value
from icl.figures.items import Item, Level
from icl.figures.style import shared_legend
from icl.verdicts import joint

MASKS = {"unmasked": "no mask, as in the paper", "masked": "the query masked as a key"}
SIGNIFICANT = 0.1  # of the loss
MANY = 4  # layers, after which the paper sees no improvement
BELOW = 3  # layers of a stack that has a smaller risk than the scalar family at any depth
# A trained stack's loss over the family's, by depth: bounds set before training.
REACHED = {"unmasked": {2: 1.34, 3: 1.15, 4: 0.88}, "masked": {3: 5.0, 4: 50.0}}

DEEPER = {
    "unmasked": [
        "What the prompts left out add depends on the seed: training on plain prompts does not see them. "
        "Prompts that show them (train.estimator=tilted, as in Figure 8) make the risk of three layers as "
        "small as the family's.",
    ],
    "masked": [
        "In six seeds about half of twelve starts were on a plateau of three layers after 3,000 steps; of "
        "the two starts of a seed the better one goes on. So the verdict depends on the seeds: at 3 to 5 it "
        "holds, at 6 to 8 and at d = 4, n = 20 it is undecided.",
    ],
}


class Fig2(Drawing):
    caption = (
        "Loss divided by d of LSA by layers and of Newton's iteration by steps, for N(0, I), which is what "
        "the published code draws where kappa = 1. (a) No mask, as in the paper: the query token is a term "
        "of its own sum. (b) The query masked. Blue: trained from random weights, in Gram form without "
        "clipping, mean over seeds and their range. Dashed: the best point found of the scalar family A_l, "
        "B_l ~ I (exact expectation with a mask and up to four layers; fitted and evaluated on weighted "
        "prompts otherwise; a sixth layer does nothing, since its tail is beyond float64). Squares: "
        "training that starts at that point with a little noise, which shows what is attainable and not what "
        "training from random weights attains (none where noise of "
        "1e-4 takes the loss above half of that of weights that are 0). Dotted black: a floor below the "
        "scalar family without a mask, of any depth. Newton is averaged over contexts; dotted, from a better "
        "start. Red: with LayerNorm, without a mask, over tokens, trained."
    )

    layout = Layout("ab", (3.1, 2.5))

    def __init__(self, decisive: bool = False) -> None:
        self.decisive = regression.flag("decisive", decisive)

    def items(self, records: Records) -> list[Item]:
        known, losses = records["baselines"].weights, records["losses"].weights
        depths = known["depths_L"].tolist()
        items: list[Item] = []
        for panel, mask in zip("ab", MASKS, strict=True):
            items += regression.newton_lines(panel, known, max(depths))
            items.append(regression.training_curve(panel, losses, names(mask, depths)))
            items.append(regression.family_line(panel, known, mask))
            if begun := started(losses, mask, depths):
                items.append(regression.start_points(panel, losses, begun))
        items.append(regression.layernorm_curve("a", records))
        floor = float(known["family_unmasked_floor"])
        return [*items, Level("a", "the family's floor, any depth", floor, ":")]

    def decorate(self, panels: Panels, records: Records) -> None:
        depths = records["baselines"].weights["depths_L"].tolist()
        for (panel, axes), mask in zip(panels.items(), MASKS.values(), strict=True):
            regression.label(axes, f"({panel}) {mask}", depths)
        low = min(row["y"] for row in self.table(records) if "2I" not in row["series"])
        for axes in panels.values():
            axes.set_ylim(bottom=low / 3)
        shared_legend(panels.values(), panels["b"], loc="upper left", bbox_to_anchor=(1.0, 1.02))

    def claims(self, records: Records) -> list[Claim]:
        known, arrays = records["baselines"].weights, records["losses"].weights
        risks, depths = records["risks"].weights, known["depths_L"].tolist()
        trained = {
            mask: {layers: regression.of_seeds(arrays, name) for layers, name in names(mask, depths).items()}
            for mask in MASKS
        }
        best = {mask: {layers: regression.family(known, mask, layers) for layers in depths} for mask in MASKS}
        return [
            regression.between(
                "with l layers LSA, without a mask, lies between l steps of Newton of orders 2 and 3 (from "
                "the authors' start, N(0, I))",
                trained["unmasked"], known, "transpose", decisive=self.decisive, expected="fails",
                remarks=[
                    "The scalar family is a part of LSA: its least loss is a bound for trained weights.",
                    "Undertrained weights pass through the region between the orders on their way down.",
                ],
            ),
            *[_of_family(mask, best[mask], known, start) for mask in MASKS for start in START_SAID],
            _starts(known, max(depths)),
            *_levels_off(best, known, depths),
            _one_layer(arrays, best),
            *_deeper(risks, depths, self.decisive),
            *_above_in_risk(risks, best),
            *_below_the_floor(risks, best, known),
            *_started(arrays, best, depths),
            *_layernorm(records, trained["unmasked"], best["unmasked"], self.decisive),
        ]  # fmt: skip


def names(mask: str, depths: list[int]) -> dict[int, str]:
    return {layers: f"kappa1_{mask}_L{layers}" for layers in depths}


def started(losses: Arrays, mask: str, depths: list[int]) -> dict[int, str]:
    """Return the names of the stacks that begin at the family's best point, by depth; not every one does."""
    of = names(f"{mask}_started", depths)
    return {layers: name for layers, name in of.items() if f"{name}_mean" in losses}


def _of_family(mask: str, best: dict[int, Value], known: Arrays, start: str) -> Claim:
    places = {layers: regression.place([value], known, start, layers) for layers, value in best.items()}
    elsewhere = set(places.values()) & {"below order 3", "above order 2"}
    verdict = "fails" if elsewhere else "undecided" if "not told apart" in places.values() else "holds"
    return Claim(
        f"with l layers the scalar family's best point, {MASKS[mask].removesuffix(', as in the paper')}, "
        f"lies between l steps of orders 2 and 3 from {START_SAID[start]} (N(0, I))",
        {
            name: f"{best[layers].mean:.3g}, {where}"
            for layers, (name, where) in zip(best, regression.places_by_depth(places).items(), strict=True)
        },
        f"every depth, {LEVEL:.1%} intervals over prompts",
        verdict,
        expected="fails",
        trained=False,
        whose="project",
        remarks=["Best point found: a bound from above for the family, and so for LSA itself."],
        kind="sampled",
    )


def _starts(known: Arrays, most: int) -> Claim:
    measured, verdicts = {}, []
    for order in regression.ORDERS:
        for step in range(1, most + 1):
            authors, better = (regression.newton(known, start, order, step) for start in START_SAID)
            measured[f"order {order}, step {step}"] = authors.mean / better.mean
            verdicts.append("holds" if better.below(authors) else "undecided")
    return Claim(
        f"Newton from {START_SAID['identity']} has a smaller loss than from {START_SAID['transpose']} after "
        "every step",
        measured,
        f"ratio above 1, {LEVEL:.1%} intervals over contexts",
        joint(verdicts),
        trained=False,
        whose="project",
        kind="sampled",
    )


def _levels_off(best: dict[str, dict[int, Value]], known: Arrays, depths: list[int]) -> list[Claim]:
    if MANY not in depths:
        return []
    at, least = best["unmasked"][MANY], float(known["family_unmasked_floor"])
    gain, half = (
        1 - least / at.mean,
        HALF * (at.error + float(known["family_unmasked_floor_error"])) / at.mean,
    )
    fall = best["masked"][MANY - 1].mean / best["masked"][MANY].mean
    return [
        Claim.of(
            f"beyond {MANY} layers LSA does not improve significantly: without a mask, no depth of the "
            "scalar family has a much smaller loss (N(0, I))",
            {
                f"best of {MANY} layers": at.mean,
                "floor of any depth": least,
                "left to gain": gain,
                f"with a mask, {MANY - 1} layers over {MANY}": fall,
            },
            sampled(gain, half).below(
                SIGNIFICANT, f"left to gain below {SIGNIFICANT:.0%} of the loss, {LEVEL:.1%} interval"
            ),
            trained=False,
            remarks=[
                "The paper attributes it to training. The query's token in its own sum leaves a floor that "
                "no depth removes (check=giannou/mask_floor); with a mask every layer helps.",
                "The floor is the scalar family's: LSA that begins there goes a little below it.",
            ],
        )
    ]


def _excess(arrays: Arrays, name: str, least: Value) -> tuple[float, float]:
    """Largest excess over seeds of the loss over the best point's on the same prompts, and half its width."""
    worst = int(np.argmax(arrays[f"{name}_more_mean"]))
    more, error = arrays[f"{name}_more_mean"][worst], arrays[f"{name}_more_error"][worst]
    return float(more) / least.mean, HALF * float(error) / least.mean


def _numbers_of(excesses: Iterable[tuple[float, float]]) -> ClaimNumbers:
    pairs = list(excesses)
    return sampled([value for value, _ in pairs], [half for _, half in pairs])


def _one_layer(arrays: Arrays, best: dict[str, dict[int, Value]]) -> Claim:
    excess = {
        said: _excess(arrays, names(mask, [1])[1], best[mask][1])
        for mask, said in MASKS.items()
        if 1 in best[mask]
    }
    return Claim.of(
        "one layer, trained from random weights, attains the loss of the scalar family's best point",
        {name: value for name, (value, _) in excess.items()},
        _numbers_of(excess.values()).below(
            NEAR, f"excess below {NEAR:.0%} in every seed (largest shown), {LEVEL:.1%} intervals"
        ),
        whose="project",
    )


def _deeper(risks: Arrays, depths: list[int], decisive: bool) -> list[Claim]:
    """Compare the mean over seeds without a mask; with one, where some seeds stay on plateaus, the best of
    them by a training loss."""
    claims = []
    for mask, said, of in (
        ("unmasked", "without a mask", "mean over seeds"),
        ("masked", "with a mask", "seed of least training loss"),
    ):
        ratios: dict[str, Any] = {}
        bounds, decisions = [], []
        for layers, most in REACHED[mask].items():
            if layers not in depths:
                continue
            name = names(mask, [layers])[layers]
            ratio_R, error_R = risks[f"{name}_usual"], risks[f"{name}_usual_error"]
            if mask == "masked":
                best = [int(risks[f"{name}_best_seed"])]
                ratio_R, error_R = ratio_R[best], error_R[best]
            ratio = float(ratio_R.mean())
            ratios |= {
                f"{layers} layers": ratio,
                f"{layers} layers, by seed": risks[f"{name}_usual"].tolist(),
            }
            bounds.append(f"{most:g}")
            decisions.append(sampled(ratio, HALF * float(error_R.mean())).at_most(most))
        if not ratios:
            continue
        reached = all_of("", *decisions).verdict
        claims.append(
            Claim(
                f"deeper stacks, trained from random weights a layer at a time, come near the loss of the "
                f"scalar family's best point, {said}, on all but the one prompt in a thousand whose S' has "
                "the largest eigenvalue",
                ratios,
                f"loss over the family's on the same prompts, {of}, at most {', '.join(bounds)}, bounds set "
                f"before training; {LEVEL:.1%} intervals over prompts",
                reached if decisive or reached == "holds" else "undecided",
                whose="project",
                remarks=DEEPER[mask],
                kind="sampled",
            )
        )
    return claims


def _above_in_risk(risks: Arrays, best: dict[str, dict[int, Value]]) -> list[Claim]:
    """Bound the risk from below by a weighted loss that is capped."""
    if MANY not in best["unmasked"]:
        return []
    measured, decisions = {}, []
    for mask, said in MASKS.items():
        name, least = names(mask, [MANY])[MANY], best[mask][MANY].mean
        over_R = risks[f"{name}_capped_mean"] / least
        measured[said] = float(over_R.min())
        numbers = sampled(over_R, HALF * risks[f"{name}_capped_error"] / least)
        usual = float((risks[f"{name}_usual"] + HALF * risks[f"{name}_usual_error"]).max())
        decisions.append(numbers.above(max(1.0, 2 * usual)))
    above = all_of("", *decisions).verdict
    return [
        Claim(
            f"the risk of {MANY} layers so trained is above that of the scalar family's best point, with a "
            "mask and without; more than half of it is that of the one prompt in a thousand left out, "
            "which a test of some thousand prompts does not show",
            measured,
            "risk over the family's above 1, and above twice the ratio on the others, in every seed (least "
            "shown), by a lower bound: the mean of weighted losses, none above 1; "
            f"{LEVEL:.1%} intervals over prompts",
            "holds" if above == "holds" else "undecided",
            whose="project",
            remarks=[
                f"{MANY} layers are a polynomial of degree {3**MANY - 1} in S' or S. The published code "
                "clips activations, which bounds the loss of such prompts.",
            ],
            kind="sampled",
        )
    ]


def _below_the_floor(risks: Arrays, best: dict[str, dict[int, Value]], known: Arrays) -> list[Claim]:
    """Compare with the floor through the best of as many layers, on the same prompts."""
    if BELOW not in best["unmasked"]:
        return []
    name, family = names("unmasked_started", [BELOW])[BELOW], best["unmasked"][BELOW]
    if f"{name}_more_mean" not in risks:
        return []
    floor = float(known["family_unmasked_floor"])
    above_R = (risks[f"{name}_more_mean"] + family.mean - floor) / floor
    error = np.hypot(family.error, float(known["family_unmasked_floor_error"]))
    # One such stack suffices; the interval of each is that of all together.
    half = quantiles.normal((1 - LEVEL) / (2 * len(above_R)))
    half_R = half * np.hypot(risks[f"{name}_more_error"], error) / floor
    least = int(np.argmin(above_R + half_R))
    below = sampled(float(above_R[least]), float(half_R[least])).below(0.0).verdict
    return [
        Claim(
            f"the floor is the scalar family's, not that of linear attention: {BELOW} layers of free P and "
            "Q, without a mask, can have a smaller risk than the family has at any depth (N(0, I))",
            {"floor": floor, "risk minus the floor, over the floor, by seed": above_R.tolist()},
            f"below 0 in one seed, {LEVEL:.1%} intervals over weighted prompts, for all seeds together",
            "holds" if below == "holds" else "undecided",
            whose="project",
            remarks=["These begin at the family's best point."],
            kind="sampled",
        )
    ]


def _started(arrays: Arrays, best: dict[str, dict[int, Value]], depths: list[int]) -> list[Claim]:
    excess = {
        f"{layers} layers, {said}": _excess(arrays, name, best[mask][layers])
        for mask, said in MASKS.items()
        for layers, name in started(arrays, mask, depths).items()
    }
    shown = [pair for key, pair in excess.items() if key.startswith("1 layer")]
    return [
        Claim.of(
            "one layer that starts at the best point of the scalar family keeps its loss; for deeper stacks "
            "the difference is shown, below zero where LSA improves on the family",
            {name: value for name, (value, _) in excess.items()},
            _numbers_of(shown).below(
                NEAR,
                f"one layer: excess below {NEAR:.0%} in every seed (largest shown), {LEVEL:.1%} intervals",
            ),
            whose="project",
        )
    ]


def _layernorm(
    records: Records, trained: dict[int, list[Value]], best: dict[int, Value], decisive: bool
) -> list[Claim]:
    """Compare with and without LayerNorm: one layer without it is at its best, deeper ones at the least
    known."""
    arrays = records["losses_kappa1_layernorm"].weights
    measured, places = {}, []
    for depth in arrays["depths_L"].tolist():
        if depth not in best:
            continue
        values = regression.of_seeds(arrays, f"kappa1_layernorm_L{depth}")
        least = min([*trained[depth], best[depth]], key=lambda value: value.mean)
        below_all = all(value.below(least) for value in values)
        places.append("holds" if below_all else "fails" if all(map(least.below, values)) else "undecided")
        mean = sum(value.mean for value in values) / len(values)
        measured[f"{depth} layer{'s' if depth > 1 else ''}"] = f"{mean:.3g} against {least.mean:.3g}"
    if not places:
        return []
    verdict = joint(places)
    return [
        Claim(
            "LayerNorm improves LSA: without a mask, trained, it has a smaller loss than as many layers "
            "without it (N(0, I))",
            measured,
            "below the best of trained LSA and of the scalar family's best point, in every seed, "
            f"{LEVEL:.1%} intervals over prompts",
            verdict if decisive or verdict == "holds" else "undecided",
            expected="undecided",
            remarks=[
                "With a large constant c in its tokens a stack with LayerNorm is within O(1/c^2) of any "
                "without it whose heads are no wider: the best with it is at least as good at every depth, "
                "and no budget refutes it of the best. What is undecided is where training from random "
                "weights ends: at one layer below or above LSA, by the steps and the first weights.",
                "At two layers there is little to gain: with LayerNorm, training that begins at the scalar "
                "family's best point ends within 5% of LSA.",
            ],
            kind="sampled",
        )
    ]
