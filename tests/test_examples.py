"""The scripts that the README shows do what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_ten_lines_train_predict_and_compare(tmp_path: Path) -> None:
    script = ROOT / "examples" / "ten_lines.py"
    done = subprocess.run(
        [sys.executable, str(script), "smoke"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = re.findall(r"seed (\d): (\S+), least squares: (\S+), truth: (\S+)", done.stdout)
    assert [line[0] for line in lines] == ["0", "1"]
    for _, prediction, least_squares, truth in lines:
        assert least_squares == truth
        assert abs(float(prediction) - float(truth)) < 3  # little trained, but in the labels' units and sign
    assert len({line[1] for line in lines}) == 2
    code = [
        line for line in script.read_text().splitlines() if line and not line.startswith(('"""', "import"))
    ]
    assert len(code) <= 10
