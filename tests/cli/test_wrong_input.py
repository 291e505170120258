"""What a user can get wrong: exit 2, one line that helps, nothing on stdout, nothing written anywhere."""

import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from icl.cli import main
from tests.cli.conftest import TINY

T = "train experiment=ahn/theorem3 scale=smoke"
L = "train experiment=ahn/theorem4_lbfgs scale=smoke"
S = f"{T} -m hydra/sweeper=search"
C = "check check=ahn/theorem1 scale=smoke"
WRONG = {
    f"{T} task.foo=1": "task.foo: no such key",
    f"{T} task.contxt=3": "did you mean task.context?",
    f"{T} optimzer.lr=3": "did you mean optimizer.lr?",
    f"{T} check=[ahn/lemma1]": "did you mean checks?",
    f"{T} +model.foo=1": "model.foo: SparseA has no such setting",
    f"{T} +foo=1": "foo: no such key in icl train",
    f"{T} +train.foo=1": "train.foo: no such key",
    f"{T} +paths.foo=1": "paths: ",
    f"{T} ~task": "task: ",
    f"{T} ~optimizer.lr": "optimizer.lr: missing",
    f"{T} task.dim=abc": "task.dim=abc: must be an integer",
    f"{T} task.eigenvalues=[1,2": "cannot be read as an override",
    f"{T} model.layers=0": "model.layers=0: must be",
    f"{T} model=null": "model=null: no such option; did you mean full? (one of: encoder, ",
    f"{T} logger=17": "logger=17: no such option (one of: csv, many, none, ",
    f"{T} -m seed=range(0,10,0)": "range() arg 3 must not be zero",
    f"{T} model.activation=softmax": "set model.path=tokens",
    f"{T} optimizer.foo=1": "optimizer.foo: no such key",
    f"{T} optimizer.lr=-1": "optimizer.lr=-1: must be",
    f"{T} optimizer.lr=[0.1]": "has 1 entries for 2 seeds",
    f"{T} optimizer=lbfgs train.clip=0.1": "train.clip: must be null",
    f"{T} seeds=[0,0]": "duplicates",
    f"{T} seeds=[]": "at least one integer",
    f"{T} seed=-1": "seed=-1: must be",
    f"{T} seed=1,2": "several values need -m",
    f"{T} scale=tiny": "must be one of smoke, laptop, paper",
    f"{T} format=xml": "must be one of text, json",
    f"{T} force=maybe": "force=maybe: must be true or false",
    f"{T} trainer.accelerator=foo": "trainer.accelerator=foo: must be one of",
    f"{T} trainer.max_epochs=2": "(+trainer.max_epochs=... adds it)",
    f"{T} +trainer.max_epochs=2": "trainer.max_epochs: not here: a run is of train.steps optimizer steps",
    f"{T} name=../x": "name=../x: must be a relative name",
    f"{T} task._target_=os.system": "task._target_=os.system: must be in one of icl",
    f"{T} task._target_=icl.models.SparseA": "task.",
    f"{T} optimizer._target_=torch.optim.lr_scheduler.StepLR": "must be a torch.optim.Optimizer",
    f"{T} checks=[nope]": "check=nope: no such option",
    f"{T} checks=[ahn/theorem2]": "says nothing about trained weights",
    f"{T} checks=[ahn/theorem1]": "check.weights: Theorem 1 ",
    f"{T} model=full checks=[ahn/theorem3]": "Theorem 3 is about family sparse_a",
    f"{T} seed=18446744073709551616": "seed=18446744073709551616: must be an integer from 0 to 9",
    f"{T} trainer.threads=1000000000": "trainer.threads=1000000000: must be",
    f"{T} train.batch=1000000000000": "train.batch=1000000000000: one batch takes 372,529 GiB, this machine ",
    f"{T} train.steps=1000000000000": "rows of metrics, 1000000 at most",
    f"{T} name={'n' * 300}": "must be a relative name",
    f"{T} model._target_=icl.errors.InputError": "is not a class of parts",
    f"{T} paths.outputs=/tmp/{'x' * 300}": "cannot be a folder (File name too long)",
    f"{T} paths.outputs=/dev/null/x": "/dev/null is not a folder",
    f"{T} --config-dir /nope": "--config-dir /nope: no such folder",
    f"{T} --foo": "unrecognized arguments: --foo",
    f"{T} foo": "must have the form KEY=VALUE",
    "train experiment=ahn/thoerem3": "did you mean ahn/theorem3? (one of: ahn/",
    "train tsk=foo": "did you mean task?",
    "train task=foo": "task=foo: no such option (one of: conditioned_regression, dynamical_system, linear_",
    f"{T} -m task.dim=3,0": "task.dim=0: must be",
    f"{T} -m optimizer.lr=0.1,foo": "optimizer.lr=foo: must be",
    f"{T} -m format=json,text": "must be the same in all jobs",
    "train -m experiment=ahn/theorem3,nope": "experiment=nope: no such option",
    "check": "check: choose one",
    "check check=nope": "check=nope: no such option (one of: ahn/conditioning, ",
    "check check=theorem1": "did you mean ahn/theorem1 or xie/theorem1?",
    "check check=foo/all": "(one of: all, ahn/all, ",
    "check check=all check.dim=3": "with check=all only check.seed",
    "check check=ahn/all jobs=0": "jobs=0: must be",
    "check check=ahn/all -m check.seed=1,2": "runs many already",
    f"{C} check.dm=1": "did you mean check.dim?",
    f"{C} +check.foo=1": "check.foo: Theorem1 has no such setting",
    f"{C} check.context=1000000000000000000000000000000": "000000: must be",
    f"{C} check.dim=0": "check.dim=0: must be",
    f"{C} check.eigenvalues=[1,2]": "has 2 numbers, must have 5",
    f"{C} check.expected=maybe": "must be one of holds, fails, undecided",
    f"{C} check._target_=os.path.join": "must be in one of icl",
    f"{C} check._target_=icl.checks.ahn.nope.X": "no module icl.checks.ahn.nope",
    f"{C} check.weights=/nope": "check.weights=/nope: no such run folder",
    f"{C} check.weights=.": "must be the folder of a finished run",
    "trian": "no verb trian; did you mean train?",
    "report -m scale=smoke,laptop": "report: runs many already",
    "reproduce hydra.mode=MULTIRUN": "reproduce: runs many already",
    "bench -m bench=train,ahn": "bench: runs many already",
    "figure": "figure: choose one",
    "figure figure=ahn/fig9": "figure=ahn/fig9",
    "figure figure=nobody/all": "nobody/all",
    "figure figure=all figure.experiment.context=20": "only scale",
    "figure figure=ahn/fig3 figure.experiment.context=0": "figure.experiment.context=0",
    "figure figure=ahn/fig3 figure.experiment.contxt=20": "contxt",
    "reproduce only=[ann]": "only=ann: no such paper; did you mean ahn?",
    "reproduce only=5": "only=5: must be a list",
    "report only=null": "only=None: must be a list",
    "bench scale=x": "scale=x: must be one of",
    "train experiment=ahn/theorem3 scale=huge": "icl: scale=huge: must be one of",
    "reproduce jobs=0": "jobs=0: must be",
    "reproduce check.dim=3": "check.dim: no such key",
    "reproduce +foo=1": "foo: no such key in icl reproduce",
    "reproduce logger.mode=foo": "logger.mode=foo: must be one of",
    f"{C} logger.entity={'0a' * 20}": "logger.entity: must be a name",
    "reproduce -m scale=smoke,laptop": "runs many already",
    "report jobs=2": "jobs: no such key",
    "report only=[anh]": "only=anh: no such paper; did you mean ahn?",
    "sweep sweep=x": "must be the folder of a sweep",
    "list foo": "foo: icl list takes",
    "check check=null": "check=null: no such option (one of: ahn/",
    f"{T} optimizer.betas={{a:1}}": "optimizer.betas={'a': 1}: must be a number, or a list",
    f"{T} optimizer.eps=inf": "with these options Adam moves nothing",
    f"{T} optimizer=adamw optimizer.weight_decay=true": "optimizer.weight_decay=True: must be a number",
    f"{L} optimizer.history_size=0": "LBFGS fails with these options",
    f"{L} optimizer.line_search_fn=foo": "only 'strong_wolfe' is supported",
    f"{L} optimizer.max_iter=-1": "with these options LBFGS moves nothing",
    f"{T} callbacks.gradient.count=1000000000": "count=1000000000: must be an integer from 0 to 1000000",
    f"{T} model.layers=1000000": "model.layers=1000000: must be",
    f"{T} task.dim=1000000": "task.dim=1000000: must be",
    f"{T} -m seed=0,0": "two jobs are one and the same train",
    f"{T} -m seed=range(10000000)": "seed=range(10000000): makes more than 100000 jobs",
    "train experiment=xie/heads scale=smoke model.heads=1000000": "model.heads=1000000: must be",
    # of the third kind of run that the figure wants
    "figure figure=xie/fig3 scale=smoke figure.experiment.minibatch_steps=1000000000000": "rows of metrics",
    "check check=ahn/softmax scale=smoke check.samples=1000000000000": "tokens and scores fill the memory",
    f"{T} logger.mode={{a:1}}": "logger.mode={'a': 1}: is a setting of W&B's, and no group",
    f"{T} optimizer.schedule=5": "optimizer.schedule=5: must be a group of settings",
    f"{T} hydra/env=[1]": "no config can be composed of this",
    f"{T} hydra.sweeper=x": "hydra.sweeper=x: must be a group of settings",
    f"{T} hydra.launcher=null": "hydra.launcher=None: must be a group of settings",
    f"{T} task.eigenvalues={'[' * 200}{']' * 200}": "nested too deeply",
    "bench threads=1000000000": "threads=1000000000: must be an integer from 1 to 4096",
    "reproduce only=17": "only=17: must be a list",
    "clean yes=maybe": "must be one of true, false",
    "completion fish": "must be one of bash, zsh",
    f"{T} -m seed=glob(*)": "leaves no job",
    # sweepers, launchers and what Hydra brings along
    f"{S} search.method=gird": "did you mean grid?",
    f"{S} search.trials=0": "search.trials=0: must be",
    f"{S} search.trails=3": "search.trails: no such key",
    f"{S} search.objective=null": "search.objective=None: must be",
    f"{S} search.method=grid optimizer.lr=interval(0.001,0.1)": "takes values, not an interval",
    f"{S} optimizer.lr=interval(0.1,0.001)": "must have its ends in order",
    f"{S} optimizer.lr=tag(log,interval(0,1))": "must be above 0",
    f"{S} model.layes=1,2": "did you mean",
    S: "nothing is swept",
    "check -m check=ahn/theorem1 hydra/sweeper=search check.dim=3,4": "is for icl train",
    "check -m check=ahn/theorem1 hydra/launcher=vectorized check.dim=3,4": "is for icl train",
    f"{T} -m hydra/launcher=vectorized seed=0,1 hydra.launcher.max_replicas=0": "max_replicas=0: must be",
    f"{T} -m hydra/launcher=vectorized seed=0,1 train.batch=0": "train.batch=0: must be",
    f"{T} -cp /tmp": "--config-path: the configs of icl stay where they are; --config-dir",
    f"{T} -cn other": "--config-name: the verb names the config",
    f"{T} --experimental-rerun job.pickle": "--experimental-rerun: would run what a pickle says",
    f"{T} -m --cfg job": "--multirun and --cfg: only one of them",
    f"{T} --run --info config": "--run and --info: only one of them",
    f"{T} --resolve": "--resolve: only beside --cfg",
    f"{T} --package task": "--package: only beside --cfg",
    f"{T} -m seed=0,1 hydra/launcher=joblb": "no such launcher is installed; did you mean joblib?",
    f"{T} -m seed=0,1 hydra/sweeper=nope": "no such sweeper is installed (one of: basic",
    f"{T} -m hydra.launcher.n_jobs=1,2 hydra/launcher=joblib": "Sweeping over Hydra's configuration",
    f"{T} hydra.mode=RUN seed=0,1": "several values need -m",
    f"{T} -m +hydra.launcher.x._target_=subprocess.Popen": "launcher.x._target_=subprocess.Popen: ",
    f"{T} -m +hydra.sweeper.custom_search_space=os.system": "_search_space._target_=os.system: ",
    f"{T} -m seed=0,1 hydra/job_logging=default": "hydra.job_logging: leave it at none",
    # parts
    f"{T} +model._partial_=true": "model._partial_: leave it out; icl builds the parts itself",
    f"{T} +optimizer._partial_=true": "optimizer._partial_: leave it out",
    f"{T} +optimizer.schedule._args_=[1]": "optimizer.schedule._args_: leave it out",
    f"{T} +model.inner._target_=os.system": "model.inner._target_=os.system: must be in one of icl",
    f"{T} +model.inner._target_=icl.models.SparseA": "model.inner.dim: missing",
    f"{T} +callbacks.mine._target_=json.JSONDecoder": "must be in one of icl",
    f"{T} +callbacks.mine=5": "callbacks.mine=5: must be null, or settings with a _target_",
    f"{T} callbacks.gradient.cuont=5": "callbacks.gradient.cuont",
    f"{T} callbacks.gradient.samples=63": "samples=63: must be an integer from 64",
    f"{T} callbacks.gradient.samples=1000000000": "samples=1000000000: must be an integer from 64",
    f"{T} +logger.mine._target_=os.system": "must be in one of icl, torch.optim, pytorch_lightning",
    f"{T} +logger.mine._target_=pytorch_lightning.Trainer": "must be a logger of Lightning's",
    f"{T} +logger.mine={{save_dir:x}}": "logger.mine: has no _target_",
    f"{T} logger=csv +logger.csv.foo=1": "logger.csv.foo: CSVLogger has no such setting",
    f"{T} +logger.lightning=5": "logger.lightning: no such key",
}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home, temporary and working folder, all empty."""
    for name in ("home", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


def contents(folder: Path) -> list[str]:
    return sorted(os.path.join(top, name) for top, dirs, files in os.walk(folder) for name in [*dirs, *files])


@pytest.mark.parametrize("line", WRONG)
def test_exit_2_one_line_and_nothing_written(
    line: str, places: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = contents(places)
    assert main(line.split()) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert WRONG[line] in err and err.startswith("icl: ") and err.count("\n") == 1, err
    assert contents(places) == before


def test_files_that_claim_to_be_huge(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are not unpacked to be refused."""

    def header(*shape: int) -> bytes:
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    (places / "huge.npy").write_bytes(header(10**6, 10**9))
    with ZipFile(places / "bomb.npz", "w") as bomb:
        bomb.writestr("A.npy", header(100, 5, 200_000))
        bomb.filelist[0].file_size = 100 * 5 * 200_000 * 8
    before = contents(places)
    for line, said in {
        f"{T} task.covariance={places}/huge.npy": "huge.npy: not a readable .npy array",
        f"{C} check.covariance={places}/huge.npy": "huge.npy: not a readable .npy array",
        f"check check=giannou/ridge scale=smoke check.design={places}/huge.npy": "not a readable .npy array",
        f"{C} check.weights={places}/bomb.npz": "bomb.npz: unpacks to 763 MiB, 512 at most",
    }.items():
        assert main(line.split()) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1) and said in err, err
    assert contents(places) == before


def test_a_finished_run_does_not_excuse_wrong_input(tiny, icl) -> None:
    assert tiny().code == 0
    for wrong in ("trainer.accelerator=foo", "callbacks.heatmaps.count=-1", "task.dim=5.0"):
        result = tiny(wrong)
        assert (result.code, result.out) == (2, ""), wrong


def test_tiny_is_valid(tiny) -> None:
    assert len(TINY) == len({override.partition("=")[0] for override in TINY})
    assert tiny("train.steps=1").code == 0
