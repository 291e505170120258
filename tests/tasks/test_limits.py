"""Tests that settings no task can have are refused in one line, by name. Wrong types: tests/conformance."""

import pytest

from icl.errors import InputError
from icl.tasks import ConditionedRegression, DynamicalSystem, LinearRegression, LogisticRegression

COVARIANCE, INDEFINITE = [[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]
INVERSE = {"task_covariance": "inverse"}
LINEAR = [
    ({"dim": 0}, r"^task\.dim=0: must be an integer from 1 to 512$"),
    ({"context": 0}, r"^task\.context=0: must be an integer of at least 1$"),
    ({"context": [20, 0]}, r"task\.context=0"),
    ({"eigenvalues": [1, 1]}, r"task\.eigenvalues=\[1, 1\]: has 2 numbers, must have 5"),
    ({"eigenvalues": [1, 1, 1, 1, -0.5]}, r"task\.eigenvalues=-0\.5: must be a finite number above 0"),
    ({"eigenvalues": [1, 1, 1, 1, 0]}, r"task\.eigenvalues=0: must"),
    ({"eigenvalues": [1, 1, 1, 1, float("nan")]}, r"task\.eigenvalues=nan"),
    ({"rotation": "har"}, r"task\.rotation=har: must be one of haar, none; did you mean haar\?"),
    ({"dim": 2, "eigenvalues": [1, 1], "covariance": COVARIANCE}, "eigenvalues and task.covariance exclude"),
    ({"covariance": "identity", "eigenvalues": [1] * 5}, r"task\.eigenvalues and task\.covariance exclude"),
    ({"dim": 2, "distortion": COVARIANCE, "covariance": COVARIANCE}, "covariance and task.distortion"),
    ({"dim": 2, "covariance": INDEFINITE}, "covariance: must be positive definite, its smallest .* -1$"),
    ({"dim": 2, "covariance": [[1.0, 0.1], [0.2, 1.0]]}, r"task\.covariance: must be symmetric"),
    ({"dim": 3, "covariance": COVARIANCE}, r"task\.covariance: has shape \(2, 2\), must have \(3, 3\)"),
    ({"dim": 2, "covariance": [[1, 2], [3]]}, r"task\.covariance: must be a 2 x 2 nested list"),
    ({"dim": 2, "covariance": [[1, float("inf")], [float("inf"), 1]]}, r"task\.covariance: every entry"),
    ({"dim": 2, "covariance": "nowhere.npy"}, r"task\.covariance=nowhere\.npy: no such \.npy file"),
    ({"dim": 2, "distortion": [[1, 2], [2, 4]], **INVERSE}, "distortion: must be invertible"),
    ({"dim": 2, "distortion": COVARIANCE}, r"task\.distortion needs task\.task_covariance=inverse"),
    ({"task_covariance": "inverze"}, r"task\.task_covariance=inverze: must be identity, inverse"),
    ({"dim": 2, "task_covariance": INDEFINITE}, r"task\.task_covariance: must be positive definite"),
    ({"dim": 2, "prior_mean": [1.0]}, r"task\.prior_mean=\[1\.0\]: has 1 numbers, must have 2"),
    ({"dim": 2, "prior_mean": [1, 1], "prior_mean_norm": 1}, "exclude each other: set one of them to null$"),
    ({"prior_mean_norm": -1.0}, r"^task\.prior_mean_norm=-1\.0: must be a finite number of at least 0$"),
    ({"dim": 2, "guess_vector": [1, 2, 3]}, r"^task\.guess_vector=\[1, 2, 3\]: has 3 numbers, must have 2$"),
    ({"dim": 2, "guess_vector": [1, 2], "guess_vector_norm": 1.0}, "guess_vector_norm exclude each other"),
    ({"guess_bias": float("inf")}, r"^task\.guess_bias=inf: must be a finite number$"),
    ({"label_noise": -1.0}, r"task\.label_noise=-1\.0: must be a finite number of at least 0"),
    ({"read_out": 0}, r"task\.read_out=0: must be -1 or 1"),
    ({"tasks": 0}, r"task\.tasks=0"),
    ({"tasks": 2.5}, r"task\.tasks=2\.5"),
    ({"task_law": "ball"}, r"task\.task_law=ball"),
    ({"task_draw": "balanced"}, r"needs task\.tasks"),
    ({"tasks": 3, "task_draw": "often"}, r"task\.task_draw=often"),
]
CONDITIONED = [
    ({"condition": 0.5}, r"task\.condition=0\.5"),
    ({"largest": [2.0, 1.0]}, r"task\.largest=.*must not fall"),
    ({"dim": 1, "condition": 4.0}, r"task\.condition=4: must be 1 where task\.dim=1"),
]
DYNAMICAL = [
    ({"spectrum": [0.1, 0.2, 0.3, 0.4, 1.2]}, "unstable"),
    ({"spectrum": [0.1]}, "must have 5"),
    ({"spectrum": "unifrom"}, "did you mean uniform"),
    ({"length": 3, "window": 2}, "length=3: must be at least window"),
    ({"length": 2}, "length=2"),
    ({"window": 0}, "window=0"),
    ({"setting": "e"}, "setting=e: must be one of a, b, c, d"),
    ({"dim": 0}, "dim=0"),
    ({"systems": 0}, "systems=0"),
    ({"process_noise": -1.0}, "process_noise"),
    ({"process_noise": 0, "observation_noise": 0, "initial_variance": 0}, "every observation is 0"),
]
LOGISTIC = [
    *(({name: 0}, rf"^task\.{name}=0") for name in ("dim", "context", "mu")),
    ({"mu": 1e-9}, r"^task\.mu=1e-09"),
    ({"mu": "small"}, r"^task\.mu=small"),
]
REFUSED = {
    LinearRegression: LINEAR,
    ConditionedRegression: CONDITIONED,
    DynamicalSystem: DYNAMICAL,
    LogisticRegression: LOGISTIC,
}


@pytest.mark.parametrize(
    ("task", "settings", "words"), [(task, *row) for task, table in REFUSED.items() for row in table]
)
def test_refused(task, settings, words):
    with pytest.raises(InputError, match=words) as refusal:
        task(**settings)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("content", [b"not an array", b""])
def test_an_unreadable_file_is_an_input_error(tmp_path, content):
    path = tmp_path / "broken.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a readable"):
        LinearRegression(dim=2, covariance=str(path))
