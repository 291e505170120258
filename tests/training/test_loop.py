"""Tests of runs in this process: ensembles against single seeds, steps and rows, failures, cached replays."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from pytorch_lightning.loggers import CSVLogger

from icl.callbacks import WeightHeatmaps
from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.run_logger import RunLoggerCallback
from icl.models import Full, MultiHead, SparseA, SparseAB, YqLSA
from icl.random import generator
from icl.runs.metrics import read_metrics
from icl.runs.store import RunStore
from icl.training import loop
from icl.training.module import Diverged
from icl.training.optimizers import ReplicaOptimizer
from icl.training.plan import TrainingPlan
from icl.training.schedules import StepHalving
from icl.training.stream import PromptStream
from tests.plans import assert_identical, stopped_at, train_one

ADAM, ADAMW, SGD, LBFGS = torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.LBFGS
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "adam": (ADAM, {"lr": 0.02, "betas": [0.9, 0.99]}),
    "adamw": (ADAMW, {"lr": 0.02, "weight_decay": 0.1}),
    "sgd": (SGD, {"lr": 0.5}),
    "momentum": (SGD, {"lr": 0.5, "momentum": 0.9}),
    "lbfgs": (LBFGS, {"lr": 1.0, "max_iter": 3, "line_search_fn": "strong_wolfe"}),
}


def assert_same(together: Mapping[str, np.ndarray], r: int, alone: Mapping[str, np.ndarray]) -> None:
    for name in ("A", "B", "A_history", "Sigma"):
        if name in together:
            gap = np.abs(together[name][r] - alone[name][0]).max()
            assert gap <= 1e-6 * np.abs(alone[name]).max(), name


@pytest.mark.parametrize("estimator", ["expected", "sampled"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_ensemble_is_its_seeds_trained_apart(make_plan: Any, name: str, estimator: str) -> None:
    common = {
        "optimizer": OPTIMIZERS[name],
        "family": lambda dim: SparseAB(dim, 2, 0.05),
        "train": {"estimator": estimator, "clip": None if name == "lbfgs" else 0.01},
    }
    together = train_one(make_plan(seeds=(3, 0, 8), name="together", **common)).record
    for r, seed in enumerate((3, 0, 8)):
        alone = train_one(make_plan(seeds=(seed,), name=f"alone{seed}", **common)).record
        assert_same(together.weights, r, alone.weights)
        losses = together.metrics["loss"][r :: len(together.run["seeds"])]
        assert np.allclose(losses, alone.metrics["loss"], rtol=1e-6)
    assert np.abs(together.weights["A"][0] - together.weights["A"][1]).max() > 1e-3


def test_every_number_may_differ_between_replicas(make_plan: Any) -> None:
    """Compare each replica with the single run with its own numbers."""
    each: dict[str, list[Any]] = {
        "lr": [0.02, 0.05, 0.01],
        "betas": [[0.9, 0.99], [0.5, 0.9], [0.99, 0.9]],
        "clip": [0.01, 1.0, 0.001],
        "std": [0.01, 0.1, 0.3],
        "context": [3, 8, 50],
    }

    def plan(seeds: tuple[int, ...], chosen: dict[str, Any], name: str) -> Any:
        optimizer = (ADAM, {"lr": chosen["lr"], "betas": chosen["betas"], "eps": 1e-3})
        return make_plan(
            seeds=seeds, name=name, optimizer=optimizer, schedule=StepHalving(4),
            family=lambda dim: SparseA(dim, 2, chosen["std"]), task={"context": chosen["context"]},
            train={"clip": chosen["clip"]},
        )  # fmt: skip

    together = train_one(plan((0, 1, 2), each, "together")).record
    first = {key: values[0] for key, values in each.items()}
    assert_same(together.weights, 0, train_one(plan((0,), first, "first")).record.weights)
    for r in (1, 2):
        own = {key: values[r] for key, values in each.items()}
        assert_same(together.weights, r, train_one(plan((r,), own, f"own{r}")).record.weights)
        for key in each:
            without = train_one(plan((r,), own | {key: each[key][0]}, f"without {key} {r}")).record
            assert np.abs(without.weights["A"] - together.weights["A"][r : r + 1]).max() > 1e-5, key


GUESSING = {"read_out": 1, "prior_mean": [1.0, -0.5], "task_covariance": "identity", "context": 6}


@pytest.mark.parametrize("family", [lambda dim: MultiHead(dim, 1, 2, 0.3), lambda dim: YqLSA(dim, 1, 0.3)])
def test_training_on_the_population_and_on_samples_agree(make_plan: Any, family: Any) -> None:
    """Train with the same optimizer from the same start, fresh prompts every step: the ends differ by
    under 1 %."""
    common = {"family": family, "task": GUESSING, "optimizer": (ADAM, {"lr": 0.02})}
    steps = {"steps": 200, "clip": None, "log_every": 20}
    exact = train_one(
        make_plan(name="exact", train=steps | {"estimator": "population", "batch": None}, **common)
    ).record
    for estimator, batch in (("sampled", 12_000), ("expected", 4000)):
        train = steps | {"estimator": estimator, "batch": batch, "steps_per_batch": 1}
        sampled = train_one(make_plan(name=estimator, train=train, **common)).record
        ends = [run.run["metrics"]["exact_risk"]["by_seed"] for run in (exact, sampled)]
        for seed, risk in ends[0].items():
            assert ends[1][seed] == pytest.approx(risk, rel=1e-2)
        assert sampled.metrics["loss"][0] == pytest.approx(exact.metrics["loss"][0], rel=0.1)
    losses = exact.metrics["loss"]
    risks = exact.run["metrics"]["exact_risk"]["by_seed"]
    assert losses[-2:] == pytest.approx(list(risks.values()), rel=1e-12)
    assert losses[-1] < 0.7 * losses[0], "nothing was learned"


@pytest.mark.parametrize("name", ["sgd", "lbfgs"])
def test_a_draw_in_pieces_trains_the_same(make_plan: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train 2 steps on each of two sets of prompts: later, rounding decides where a line search ends."""
    train = {"steps": 4, "steps_per_batch": 2, "clip": None if name == "lbfgs" else 0.01}
    common = {"optimizer": OPTIMIZERS[name], "train": train}
    whole = train_one(make_plan(name="whole", **common)).record
    monkeypatch.setattr("icl.tasks.law.CACHE_BYTES", 200)
    pieces = train_one(make_plan(name="pieces", **common)).record
    assert_same(whole.weights, 0, {key: array[:1] for key, array in pieces.weights.items()})
    assert np.allclose(pieces.metrics["loss"], whole.metrics["loss"], rtol=1e-9)


def test_steps_per_batch_and_the_last_set(make_plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take 12 steps, 5 on each set: sets start at 0, 5, 10; the last takes two steps; rows at 0 .. 12."""
    found: list[int] = []
    taken: list[int] = []
    draw, set_rates = PromptStream.draw, ReplicaOptimizer.set_rates
    monkeypatch.setattr(PromptStream, "draw", lambda self, start: found.append(start) or draw(self, start))
    monkeypatch.setattr(
        ReplicaOptimizer, "set_rates", lambda self, step: taken.append(step) or set_rates(self, step)
    )
    record = train_one(make_plan()).record
    assert found == [0, 5, 10] and taken == list(range(12))
    assert record.run["steps"] == 12
    assert record.metrics["step"] == [step for step in range(13) for _ in (0, 1)]
    assert record.metrics["seed"] == [0, 1] * 13


def test_more_steps_go_on_where_fewer_ended(make_plan: Any) -> None:
    short = train_one(make_plan(name="short", train={"steps": 7})).record
    long = train_one(make_plan(name="long", train={"steps": 12})).record
    assert long.metrics["loss"][: 2 * 7] == short.metrics["loss"][: 2 * 7]
    assert np.array_equal(long.weights["A_history"][:, 7], short.weights["A"])
    assert long.weights["history_steps"].tolist() == list(range(13))


@pytest.mark.parametrize(
    ("family", "task", "present"),
    [
        (lambda d: SparseA(d, 2, 0.1), {}, {"exact_risk", "risk_on_s", "gradient_norm_A1", "dist_plain_A1"}),
        (lambda d: SparseAB(d, 2, 0.1), {"dim": 3}, {"risk_estimate", "dist_B0", "gradient_norm_B0_stderr"}),
        (lambda d: Full(d, 2, 0.1), {"label_noise": 0.1}, {"risk_estimate_stderr", "gradient_norm_Q1"}),
    ],
)
@pytest.mark.parametrize("count", [0, 2])
def test_columns_are_complete_and_the_same_throughout(
    make_plan: Any, family: Any, task: dict, present: set[str], count: int
) -> None:
    record = train_one(make_plan(family=family, task=task, callbacks={"count": count})).record
    columns = set(record.metrics)
    optional = {name for name in present if name.startswith(("gradient", "risk_est"))}
    assert (present if count else present - optional) <= columns
    assert not count or all(any(v is not None for v in column) for column in record.metrics.values())
    header = (record.path / "metrics.csv").read_text().splitlines()
    assert all(line.count(",") == header[0].count(",") for line in header)
    metrics = record.run["metrics"]
    for name in ("loss", "exact_risk", "dist_preconditioned", "dist_plain"):
        assert set(metrics[name]["by_seed"]) == {"0", "1"}
    assert columns - {"step", "seed", "lr"} <= set(metrics)
    for name, column in record.metrics.items():
        if name in metrics:
            assert list(metrics[name]["by_seed"].values()) == column[-2:]


def test_two_layers_of_eq_11_have_no_exact_risk(make_plan: Any) -> None:
    """Compare with the projection on S, whose risk is not theirs: fresh prompts agree with the estimate."""
    short = {"train": {"steps": 2}, "callbacks": {"samples": 20_000}}
    plan = make_plan(family=lambda dim: SparseAB(dim, 2, 0.6), task={"dim": 3, "context": 15}, **short)
    record = train_one(plan).record
    metrics = {name: list(entry["by_seed"].values()) for name, entry in record.run["metrics"].items()}
    assert metrics["exact_risk"] == [None, None] and "exact_risk" not in record.metrics
    streams = [generator(seed, "check") for seed in plan.seeds]
    model = plan.model.on(plan.model.parametrization)
    model.parametrization.load({name: torch.from_numpy(record.weights[name]) for name in "AB"})
    prompt = plan.law.gram_prompts(streams, 100_000)
    loss_RB = (model.predict(prompt) - prompt.target_RB).detach().square()
    for r in range(2):
        error = math.hypot(metrics["risk_estimate_stderr"][r], float(loss_RB[r].std()) / 100_000**0.5)
        mean = float(loss_RB[r].mean())
        assert abs(metrics["risk_estimate"][r] - mean) < 5 * error
        assert abs(metrics["risk_on_s"][r] - mean) > 5 * error, "the test could not tell them apart"


def test_a_loss_that_is_no_number_fails_the_run(make_plan: Any) -> None:
    plan = make_plan(optimizer=(SGD, {"lr": 1e30}), train={"clip": None, "log_every": 3})
    for attempt in (1, 2):
        with pytest.raises(
            Diverged, match=r"the loss of seeds \[0, 1\] is not finite at step \d+: lower optimizer\.lr"
        ):
            train_one(plan)
        store = RunStore(plan.outputs)
        folder = store.path(plan.experiment, plan.fingerprint)
        assert "Diverged" in (folder / "traceback.txt").read_text()
        assert store.find(plan.experiment, plan.fingerprint, plan.digest) is None
        run = (folder / "run.json").read_text()
        assert '"status": "failed"' in run and f'"attempt": {attempt}' in run


def test_a_bad_seed_is_named_and_the_others_finish(make_plan: Any) -> None:
    """Compare the others, to the bit, with the numbers and weights that they have beside a seed that is
    sound."""
    asked: list[Any] = []
    both = make_plan(optimizer=(SGD, {"lr": [0.01, 1e30]}), train={"clip": None, "log_every": 3})
    tame = make_plan(optimizer=(SGD, {"lr": 0.01}), train={"clip": None, "log_every": 3}, name="tame")
    record = train_one(both, judge=lambda *given: asked.append(given) or []).record
    sound = train_one(tame).record
    assert not asked  # about both seeds nothing can be said
    (step,) = {record.run["diverged"].pop("1")}
    assert record.run["diverged"] == {} and 0 < step < 12
    (sentence,) = [note for note in record.run["notes"] if "finite" in note]
    assert sentence.startswith(f"the loss of seeds [1] is not finite at step {step}: lower optimizer.lr")
    for name, column in record.metrics.items():
        for row, (seed, at) in enumerate(zip(record.metrics["seed"], record.metrics["step"], strict=True)):
            if seed == 0:
                assert column[row] == sound.metrics[name][row], (name, at)
            elif at >= step and name not in ("step", "seed"):
                assert column[row] is None, (name, at)
    for name, entry in record.run["metrics"].items():
        assert entry["by_seed"] == {"0": sound.run["metrics"][name]["by_seed"]["0"], "1": None}, name
        assert entry["mean"] is None
    assert np.array_equal(record.A[0], sound.A[0]) and not np.isfinite(record.A[1]).all()


def test_a_loss_that_is_no_number_from_the_start(make_plan: Any) -> None:
    with pytest.raises(Diverged, match="at step 0: its prompts or first weights are too large"):
        train_one(make_plan(family=lambda dim: SparseA(dim, 2, 1e300)))


class RecordingLogger:
    """A logger that keeps what W&B would."""

    def __init__(self) -> None:
        self.scalars: list[tuple[int, dict]] = []
        self.pictures: list[tuple[int, str, list[str]]] = []
        self.calls: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append("closed")

    def log_metrics(self, metrics: dict, step: int) -> None:
        self.scalars.append((step, metrics))

    def images(self, step: int, name: str, pictures: list) -> None:
        self.pictures.append((step, name, [caption for caption, png in pictures]))

    def summary(self, values: dict) -> None:
        self.calls.append("summary")

    def lightning_logger(self) -> None:
        return None

    def log_hyperparams(self, values: dict) -> None:
        assert {"commit", "dirty", "versions", "threads"} <= set(values)
        self.calls.append(f"config of {values.get('device', 'what is to come')}")

    def model(self, path: Path, name: str, alias: str) -> None:
        self.calls.append(f"{path.name} as {name}:{alias}")

    def table(self, name: str, columns: list, rows: list) -> None:
        self.calls.append(name)


def followed(plan: TrainingPlan, loggers: list[RecordingLogger], *pictures: WeightHeatmaps) -> Any:
    """Open a new one of `loggers` for each attempt."""

    @contextlib.contextmanager
    def follow(attempt: int) -> Iterator[list[RunLoggerCallback]]:
        with RecordingLogger() as logger:
            loggers.append(logger)
            yield [RunLoggerCallback(logger, plan.law.arrays(), plan.seeds, 12, pictures)]

    return follow


def test_a_cached_run_is_replayed_into_the_logger(make_plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loggers: list[RecordingLogger] = []
    fit, fitted = loop.fit, []
    monkeypatch.setattr(loop, "fit", lambda *args: fitted.append(1) or fit(*args))
    plan = make_plan(callbacks={"more": [WeightHeatmaps(2)]})
    follow = followed(plan, loggers, WeightHeatmaps(2))
    judge = lambda model, law: [{"check": "c", "claim": "d", "verdict": "holds", "expected": "holds"}]  # noqa: E731
    live, cached = (train_one(plan, judge=judge, observe=follow) for _ in range(2))
    assert not live.cached and cached.cached and len(fitted) == len(loggers) == 1
    with follow(1) as (logger,):
        logger.replay(cached.record)
    first, second = ([(step, _known(scalars)) for step, scalars in logger.scalars] for logger in loggers)
    assert first == second and len(first) == 13
    captions = ["A, mean of 2 seeds, step 1", "A, mean of 2 seeds, step 12"]
    assert loggers[0].pictures == loggers[1].pictures == [(12, "weights/A", captions)]
    model = f"weights.npz as {plan.experiment.replace('/', '-')}:{plan.fingerprint}"
    assert loggers[0].calls == loggers[1].calls
    assert loggers[0].calls == [
        "config of what is to come", "config of cpu", "summary", model, "verdicts", "closed"
    ]  # fmt: skip
    step, scalars = loggers[0].scalars[3]
    losses = [scalars["seed/0/loss"], scalars["seed/1/loss"]]
    assert step == 3 and scalars["mean/loss"] == pytest.approx(sum(losses) / 2)
    assert (scalars["mean_band/loss/low"], scalars["mean_band/loss/high"]) == (min(losses), max(losses))
    assert scalars["per_matrix/dist_plain_A0"] and "mean_band/dist_plain_A0/low" not in scalars
    assert scalars["mean/lr"] and "seed/0/lr" not in scalars  # the same for all
    assert not [name for _, scalars in first for name in scalars if name.endswith("_stderr")]  # exactly 0


def test_a_run_that_is_continued_is_told_from_its_start(make_plan: Any) -> None:
    loggers: list[RecordingLogger] = []
    plan = make_plan()
    with stopped_at(7):
        train_one(plan, observe=followed(plan, loggers))
    train_one(plan, observe=followed(plan, loggers))
    steps = [[step for step, _ in logger.scalars] for logger in loggers]
    assert steps == [list(range(7)), list(range(13))]


def test_what_a_callback_logs_stands_at_its_optimizer_step(
    make_plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log to any of Lightning's loggers; at the end of a batch of 5, 5 and 2 steps."""
    plan = make_plan()
    csv = CSVLogger(tmp_path, name="lab", version="run")

    class Hands(RunLoggerCallback):
        def loggers(self) -> list:
            return [csv]

    @contextlib.contextmanager
    def follow(attempt: int) -> Iterator[list[RunLoggerCallback]]:
        yield [Hands(RecordingLogger(), {}, plan.seeds, 12, [])]

    on_step_end = Checkpoints.on_step_end

    def logs(self: Any, trainer: Any, module: Any, step: int) -> None:
        module.log("taken", float(step))
        on_step_end(self, trainer, module, step)

    monkeypatch.setattr(Checkpoints, "on_step_end", logs)
    train_one(plan, observe=follow)
    table = read_metrics(tmp_path / "lab" / "run" / "metrics.csv")
    assert table["step"] == table["taken"] == [5, 10, 12]


def _known(scalars: dict) -> dict:
    return {name: value for name, value in scalars.items() if value is not None}


def test_the_judge_sees_the_final_weights(make_plan: Any) -> None:
    seen: list[np.ndarray] = []
    record = train_one(
        make_plan(), judge=lambda model, law: seen.append(model.parametrization.A.detach().numpy()) or []
    ).record
    assert np.array_equal(seen[0], record.weights["A"])


@pytest.mark.parametrize(
    ("name", "precision", "more"),
    [
        *((name, precision, {}) for name in OPTIMIZERS for precision in ("32-true", "64-true")),
        ("adam", "bf16-mixed", {}),
        ("adam", "32-true", {"estimator": "sampled"}),
        ("adam", "32-true", {"estimator": "tilted", "coordinates": "whitened"}),
        *((name, "32-true", {"estimator": "population", "batch": None}) for name in ("adam", "lbfgs")),
    ],
)
def test_every_optimizer_resumes_bit_for_bit(
    make_plan: Any, name: str, precision: str, more: dict[str, Any]
) -> None:
    """Interrupt in the middle of a set, resume, and interrupt again at the start of one."""
    settings = {
        "optimizer": OPTIMIZERS[name],
        "trainer": {"precision": precision},
        "train": {"clip": None if name == "lbfgs" else 0.01} | more,
        "callbacks": {"seconds": 1000.0},
        "schedule": StepHalving(3),
    }
    whole = train_one(make_plan(name="whole", **settings)).record
    for stop in (3, 10):
        with stopped_at(stop):
            train_one(make_plan(**settings))
    record = train_one(make_plan(**settings)).record
    assert record.run["resumed"] == 2
    assert_identical(record, whole)


def test_the_thread_count_is_recorded_and_restored(make_plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    used: list[int] = []
    set_rates = ReplicaOptimizer.set_rates

    def watch(self: ReplicaOptimizer, number: int) -> None:
        used.append(torch.get_num_threads())
        set_rates(self, number)

    monkeypatch.setattr(ReplicaOptimizer, "set_rates", watch)
    with stopped_at(4):
        train_one(make_plan(trainer={"threads": 2}))
    record = train_one(make_plan(trainer={"threads": 1})).record
    assert set(used) == {2} and len(used) == 12
    assert record.run["threads"] == 2
    assert torch.get_num_threads() == before


def test_a_finished_loss_is_near_the_optimum_on_s(make_plan: Any) -> None:
    """Train L=2 in d=2 from small weights to within 2 % of Theorem 3's optimum."""
    from icl.theory.ahn.invariant_risk import InvariantRisk

    train = {"steps": 300, "batch": 1000, "clip": None, "log_every": 50}
    plan = make_plan(optimizer=(ADAM, {"lr": 0.05}), schedule=StepHalving(60), train=train)
    record = train_one(plan).record
    optimum = InvariantRisk(2, 6, 2).optimum().risk
    for value in record.run["metrics"]["exact_risk"]["by_seed"].values():
        assert optimum * (1 - 1e-9) <= value < 1.02 * optimum
    assert all(math.isfinite(loss) for loss in record.metrics["loss"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_cpu_and_gpu_agree(make_plan: Any, name: str) -> None:
    common = {"optimizer": OPTIMIZERS[name], "train": {"clip": None if name == "lbfgs" else 0.01}}
    on_cpu = train_one(make_plan(name="cpu", **common)).record
    on_gpu = train_one(make_plan(name="gpu", trainer={"accelerator": "gpu"}, **common)).record
    assert on_gpu.run["device"].startswith("cuda")
    for array in ("A", "A_history"):
        assert np.allclose(on_gpu.weights[array], on_cpu.weights[array], rtol=1e-6, atol=1e-9)
