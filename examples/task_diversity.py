"""Train one and three layers of eq. (8) on finitely many tasks, and draw their risks on these tasks and on
new ones beside dMMSE and ridge: `task_diversity.py PICTURE`, two minutes of one core, or with a second
argument `smoke` seconds."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import icl
from icl.algorithms import DiscreteMMSE, RidgeRegression
from icl.random import generator

smoke = "smoke" in sys.argv
NOISE, CONTEXT, SEEDS = 0.25, 16, [0, 1, 2]
COUNTS = [1] if smoke else [2**k for k in range(0, 15, 2)]
STEPS = 2 if smoke else 15
SETTINGS = {
    "checks": [], "seeds": SEEDS, "optimizer": "lbfgs", "model.init_std": 0.02,
    "task.dim": 8, "task.context": CONTEXT, "task.label_noise": NOISE,
    "train.steps": STEPS, "train.steps_per_batch": STEPS, "train.batch": 2000, "train.clip": None,
    "callbacks.gradient.count": 0,
}  # fmt: skip


def of_transformer(layers, tasks):
    """Return its risks on the pretraining tasks and on new ones, means over the seeds, and its run."""
    chosen = {"model.layers": layers, "task.tasks": tasks}
    found = icl.train("ahn/theorem3", logger="none", **SETTINGS, **chosen)
    return [found["metrics"][name]["mean"] for name in ("risk_old", "risk_new")], found["run_dir"]


def of_algorithms(law):
    """Return those of dMMSE and of ridge, from 10,000 prompts a seed."""
    answers, risks = (DiscreteMMSE(law.tasks_RKD, NOISE, CONTEXT), RidgeRegression.bayes(NOISE, CONTEXT)), []
    for of in (law, law.new_tasks):
        prompt = of.gram_prompts([generator(seed, "eval") for seed in SEEDS], 10_000)
        risks.append([float((a.predict(prompt) - prompt.target_RB).square().mean()) for a in answers])
    return list(zip(*risks, strict=True))


rows = {"one layer": [], "three layers": [], "dMMSE": [], "ridge": []}
for tasks in COUNTS:
    for name, layers in (("one layer", 1), ("three layers", 3)):
        risks, folder = of_transformer(layers, tasks)
        rows[name].append(risks)
    for name, risks in zip(("dMMSE", "ridge"), of_algorithms(icl.load_run(folder).law), strict=True):
        rows[name].append(risks)
    print(tasks, *(f"{name} {r[-1][0]:.3f} {r[-1][1]:.3f}" for name, r in rows.items()), sep="; ")

figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), sharey=True, layout="constrained")
for column, title in enumerate(("on the pretraining tasks", "on new tasks")):
    for (name, risks), style in zip(rows.items(), ("o-", "s-", "^--", "k:"), strict=True):
        axes[column].loglog(COUNTS, [risk[column] for risk in risks], style, base=2, label=name, markersize=4)
    axes[column].set(xlabel="number of pretraining tasks", title=title)
axes[0].set(ylabel="population risk", ylim=(0.02, 20))  # dMMSE on few tasks is below
axes[1].legend(fontsize=8)
figure.savefig(sys.argv[1], dpi=150)
