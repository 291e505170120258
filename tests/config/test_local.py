"""conf/local/default.yaml: settings of one machine, of the working directory or of --config-dir."""

import json
from pathlib import Path

import pytest

from icl.cli import main
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs, conf_dir
from icl.errors import InputError

VERBS = ("train", "check", "figure", "reproduce", "report", "sweep", "bench")


def put(folder: Path, text: str) -> Path:
    path = folder / "local" / "default.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"# @package _global_\n{text}")
    return path


def outputs(verb: str, *overrides: str, configs: ConfigDirs | None = None) -> str:
    found = compose(configs or ConfigDirs(), verb, overrides).settings["paths"]["outputs"]
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_the_file_of_the_working_directory(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert outputs(verb) == "outputs"
    path = put(tmp_path / "conf", "paths: {outputs: there}\n")
    assert outputs(verb) == "there"
    assert outputs(verb, "paths.outputs=typed") == "typed"
    path.write_text("# @package _global_\npaths: {outputs: elsewhere}\n")  # read again where it changes
    assert outputs(verb) == "elsewhere"
    path.unlink()
    assert outputs(verb) == "outputs"


def test_the_folder_of_config_dir_comes_before_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "conf", "paths: {outputs: there}\n")
    put(tmp_path / "mine", "paths: {outputs: mine}\n")
    configs = ConfigDirs.of(tmp_path / "mine")
    assert outputs("train", configs=configs) == configs.default_outputs() == "mine"


def test_nothing_else_of_the_working_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "conf", "logger: {project: theirs}\n")
    (tmp_path / "conf" / "train.yaml").write_text("seeds: [17]\n")  # another program's
    (tmp_path / "conf" / "optimizer").mkdir()
    (tmp_path / "conf" / "optimizer" / "own.yaml").write_text("_target_: torch.optim.SGD\n")
    settings = compose(ConfigDirs(), "train", []).settings
    assert settings["seeds"] == [0, 1, 2, 3, 4] and settings["logger"]["project"] == "theirs"
    with pytest.raises(InputError, match="optimizer=own"):
        compose(ConfigDirs(), "train", ["optimizer=own"])


def test_it_can_choose_a_logger_and_what_is_typed_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "conf", "defaults:\n  - override /logger: csv\nlogger: {project: mine}\n")
    chosen, typed = (
        compose(ConfigDirs(), "check", line).settings["logger"] for line in ([], ["logger=none"])
    )
    assert "csv" in chosen and chosen["project"] == "mine"
    assert "csv" not in typed and typed["mode"] == "none"


def test_commands_that_compose_nothing_look_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRATCH", str(tmp_path / "scratch"))
    put(tmp_path / "conf", "paths: {outputs: '${oc.env:SCRATCH}/icl'}\n")
    assert ConfigDirs().default_outputs() == str(tmp_path / "scratch" / "icl")
    assert main(["check", "check=ahn/theorem1", "format=json"]) == 0
    capsys.readouterr()
    assert main(["list", "format=json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [item["id"] for item in checks if item["done"]] == ["ahn/theorem1"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path / "conf", "paths: {outputs: '${oc.env:NO_SUCH_VARIABLE}'}\n")
    with pytest.raises(InputError, match=r"default\.yaml.*NO_SUCH_VARIABLE"):
        ConfigDirs().default_outputs()
    path.write_text("paths: [\n")
    with pytest.raises(InputError, match=r"default\.yaml"):
        ConfigDirs().default_outputs()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paths: {outputs: [\n", "cannot compose"),
        ("defaults:\n  - override /logger: nope\n", "logger=nope: no such option"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_to_be_in_it(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path / "conf", text)
    with pytest.raises(InputError) as refused:
        compose(ConfigDirs(), "check", ["check=ahn/nonconvex"])
    assert str(refused.value).startswith(f"{path}: {said}")


def test_what_is_wrong_as_typed_is_not_said_to_be_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "conf", "logger: {project: mine}\n")
    for typed in ("logger=nope", "check=ahn/nope", "nonsense=1"):
        with pytest.raises(InputError, match=rf"^{typed.partition('=')[0]}"):
            compose(ConfigDirs(), "check", ["check=ahn/nonconvex", typed])


def test_the_example_composes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    example = (conf_dir() / "local" / "example.yaml").read_text()
    put(tmp_path / "conf", example)
    for verb in VERBS:
        assert outputs(verb) == "/scratch/me/icl"
