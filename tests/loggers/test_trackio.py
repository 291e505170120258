"""logger=trackio with the real Trackio, where it is installed. Each run has a process of its own, because
Trackio reads its folder once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trackio")

ICL = "import sys; from icl.cli import main; sys.exit(main(sys.argv[1:]))"
READ = """
import json
import trackio
(run,) = trackio.Api().runs("icl")
rows = trackio.SQLiteStorage.get_logs("icl", run.name, run_id=run.id)
losses = [[row["step"], row["mean/loss"]] for row in rows if row.get("mean/loss") is not None]
kinds = {n: v["_type"] for row in rows for n, v in row.items() if isinstance(v, dict) and "_type" in v}
tables = {n: v["_value"] for row in rows for n, v in row.items() if isinstance(v, dict) and n == "verdicts"}
print(json.dumps([run.name, run.config, losses, kinds, tables]))
"""


def train(outputs: Path, *more: str) -> dict[str, object]:
    line = ["train", "experiment=ahn/theorem3", "debug=fast", "checks=[ahn/lemma1]", "logger=trackio"]
    done = subprocess.run(
        [sys.executable, "-c", ICL, *line, f"paths.outputs={outputs}", "format=json", *more],
        capture_output=True, text=True, check=False, cwd=outputs.parent,
    )  # fmt: skip
    assert done.returncode == 0 and "Trackio" not in done.stderr, done.stderr
    found: dict[str, object] = json.loads(done.stdout)  # the document, and nothing that Trackio prints
    return found


def test_curves_pictures_and_verdicts_are_in_trackio(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    document = train(outputs)
    folder = outputs / "trackio"
    read = subprocess.run(
        [sys.executable, "-c", READ], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "TRACKIO_DIR": str(folder)},
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    name, config, losses, kinds, tables = json.loads(read.stdout.splitlines()[-1])
    assert name == f"debug/fast/ahn/theorem3 {document['fingerprint']}-1"
    assert config["optimizer"]["lr"] == 0.05 and "commit" in config
    metrics = document["metrics"]
    assert isinstance(metrics, dict)
    assert losses[-1] == [2, pytest.approx(metrics["loss"]["mean"], rel=1e-12)]
    assert kinds["weights/A/0"] == "trackio.image" and kinds["summary"] == "trackio.table"
    assert [row["verdict"] for row in tables["verdicts"]] == ["holds"]
    before = sorted(folder.rglob("*.png"))
    assert before and train(outputs)["cached"]  # logged once: no second run, no further picture
    assert sorted(folder.rglob("*.png")) == before
