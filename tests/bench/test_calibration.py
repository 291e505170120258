from icl.bench import calibration


def test_rates_are_those_of_the_verdicts():
    found = iter([("holds", 1), ("holds", 2), ("fails", 3), ("undecided", 3)])
    row = calibration.calibrated("a test", lambda seed: next(found), 4)
    assert (row["fails"], row["undecided"], row["second_samples"], row["met"]) == (1, 1, 3, False)


def test_both_tests_answer_for_a_seed(monkeypatch):
    monkeypatch.setattr(calibration, "SEEDS", 1)
    assert [row["met"] for row in calibration.run(1)] == [True, True]
