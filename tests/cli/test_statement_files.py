"""`icl check FILE.py`: statements of a user's own file."""

import json
from pathlib import Path

import pytest

from icl.cli import main

HEAD = """
from dataclasses import dataclass
from icl.checks import Measured, Statement, setting
"""
WRONG = """
@dataclass
class Wrong(Statement):
    dim: int = setting(3, 1, 8)
    scale: float = setting(1.0, 0.5, 2.0)
    title, claim = "n < 5", "Every dimension is below 5."

    def measure(self, m: Measured) -> None:
        m.below("dim", self.dim, 5, "dimension")
        m.control("a dimension of 9", 9 - 5, of="dim")
"""
RIGHT = WRONG.replace("Wrong", "Right").replace("below 5", "below 9").replace("self.dim, 5", "self.dim, 9")


@pytest.fixture
def decide(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def run(text: str, *args: str) -> tuple[int, str, str]:
        Path("mine.py").write_text(text)
        code = main(["check", "mine.py", f"paths.outputs={tmp_path}", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_file_to_begin_with_holds(decide, capsys) -> None:
    assert main(["check", "new"]) == 0
    code, out, _ = decide(capsys.readouterr().out, "d=2", "check.n=1")
    text = " ".join(out.split())
    assert code == 0
    assert (
        "holds at d = 2, n = 1" in text
        and "the risk (3/2) less d*(d + 1)/(n + d + 1) is 0 (exact)" in text
        and "20 random settings" in text
    )


def test_a_counterexample_is_the_smallest_and_shown_with_its_command(decide) -> None:
    code, out, _ = decide(HEAD + WRONG, "tries=200", "seed=4")
    assert code == 1
    assert "icl check mine.py check.dim=5 check.scale=" in " ".join(out.split())
    document = json.loads(decide(HEAD + WRONG, "tries=200", "format=json")[1])
    assert document["verdict"] == "fails"
    assert document["tries"]["smallest_counterexample"]["dim"] == 5
    assert decide(HEAD + WRONG, "tries=0")[0] == 0


def test_several_statements_are_a_list_and_take_the_settings_that_they_have(decide) -> None:
    code, out, _ = decide(HEAD + WRONG + RIGHT.replace("scale", "other"), "scale=2", "format=json", "dim=6")
    first, second = json.loads(out)["checks"]
    assert (first["verdict"], first["settings"]) == ("fails", {"dim": 6, "scale": 2, "weights": None})
    assert (second["verdict"], second["settings"]) == ("holds", {"dim": 6, "other": 1.0, "weights": None})
    assert code == 1


@pytest.mark.parametrize(
    ("text", "args", "code", "message"),
    [
        (HEAD, [], 2, "no Statement with a measure (icl check new"),
        (HEAD + WRONG.replace("@dataclass", ""), [], 2, "Wrong: @dataclass is missing above the class"),
        (HEAD + WRONG, ["d=3"], 2, "(seed, samples, dim, scale)\nicl: did you mean dim?"),
        (HEAD + WRONG, ["dim=0"], 2, "check.dim=0: must be an integer of at least 1"),
        (HEAD + WRONG, ["tries=-1"], 2, "tries=-1: must be an integer from 0"),
        (HEAD + WRONG, ["format=xml"], 2, "format=xml: must be one of text, json"),
        (HEAD + "x = (", [], 2, "mine.py, line 4: SyntaxError"),
        (HEAD + "x = unknown", [], 2, "mine.py, line 4: NameError: name 'unknown' is not defined"),
        (HEAD + WRONG.replace("self.dim, 5", "self.dim / 0, 5"), [], 2,
         "mine.py, line 12, Wrong: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(decide, text, args, code, message) -> None:
    found, out, err = decide(text, *args)
    assert (found, out) == (code, "")
    assert message in err


def test_files_that_are_not_there(decide, tmp_path: Path, capsys) -> None:
    assert main(["check", str(tmp_path / "none.py")]) == 2
    assert "no such file (icl check new prints one to begin with)" in capsys.readouterr().err
    assert main(["check", "new", "dim=2"]) == 2
    assert decide(HEAD + WRONG, "other.py")[0] == 2
    code, _, err = decide(HEAD + WRONG, "-m", "dim=1,2")
    assert code == 2 and "-m takes configs" in err
    assert "scale: laptop" in decide(HEAD + WRONG, "--cfg", "job")[1]


def test_a_verdict_is_stored_listed_and_on_the_page(decide, tmp_path: Path, capsys) -> None:
    text, at = HEAD + RIGHT, ["tries=3", "format=json"]
    first, again = (json.loads(decide(text, "dim=4", *at)[1]) for _ in range(2))
    assert (first["check"], first["cached"], again["cached"]) == ("own/mine/Right", False, True)
    record = json.loads(Path(again["record"]).read_text())
    assert record["document"]["measured"] == first["measured"] == {"dim": 4}
    assert not json.loads(decide(text + "# changed", "dim=4", *at)[1])["cached"]
    assert not json.loads(decide(text, "dim=5", *at)[1])["cached"]
    assert main(["list", "format=json", f"paths.outputs={tmp_path}"]) == 0
    (listed,) = [one for one in json.loads(capsys.readouterr().out)["checks"] if one["paper"] == "own"]
    assert listed["verdicts"] == ["holds"] and listed["statement"] == "Every dimension is below 9."
    assert main(["report", f"paths.outputs={tmp_path}"]) == 0
    page = (tmp_path / "report" / "laptop.html").read_text()
    assert "Every dimension is below 9." in page and "icl check" in page


def test_statements_of_an_installed_package(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "lab_theorems.py").write_text(HEAD + RIGHT)
    about = tmp_path / "lab-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[icl.statements]\nlab = lab_theorems\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rest = ["format=json", f"paths.outputs={tmp_path / 'outputs'}"]
    assert main(["check", "lab/Right", "dim=7", *rest]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["dim"] == 7
    assert main(["list", *rest]) == 0
    (listed,) = [one for one in json.loads(capsys.readouterr().out)["checks"] if one["paper"] == "lab"]
    assert (listed["id"], listed["done"]) == ("lab/Right", True)
    assert main(["check", "lab/Rihgt", *rest]) == 2
    assert "(one of: lab/Right)\nicl: did you mean lab/Right?" in capsys.readouterr().err
