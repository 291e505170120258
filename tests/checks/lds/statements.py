"""lds's statements: settings with their verdict, and wrong lines that must turn it."""

from tests.checks.statements import Mutant, Odd

NO_NOISE = {"process_noise": 0.0, "observation_noise": 0.0, "initial_variance": 1.0, "length": 9}
NOISE_ONLY = {"process_noise": 0.0, "initial_variance": 0.0, "length": 8}
HUGE = {"process_noise": 1e-12, "observation_noise": 1e12, "initial_variance": 1e-30, "length": 7, "dim": 2}
SEQUENCES = [NO_NOISE, NOISE_ONLY, HUGE, *({"setting": s, "length": 9, "dim": 3, "seed": 7} for s in "bcd")]
ONE = {"dim": 1, "length": 3}
OPEN_NOISE = {"setting": "b", "dim": 2, "length": 10, "observation_noise": 0.73, "initial_variance": 0.28}

ODD = [
    *(Odd(f"lds/{name}", settings) for name in ("lemmaD_2", "theorem4_1") for settings in (*SEQUENCES, ONE)),
    *(Odd("lds/lemma4_1", settings) for settings in (*SEQUENCES, {**ONE, "window": 1})),
    *(Odd("lds/forgetting", {**settings, "samples": 2}) for settings in (*SEQUENCES, ONE)),
    Odd("lds/forgetting", {"setting": "c", "dim": 4, "samples": 3, "observation_noise": 10.0, "seed": 5},
        exact={"windows_within_1_percent": ["5", "11"]}),
    *(Odd("lds/stationarity", settings, "fails") for settings in (NO_NOISE, NOISE_ONLY)),
    Odd("lds/stationarity", {"initial_variance": 1.0, "length": 8}),  # E[y_t^2] falls at first
    Odd("lds/stationarity", {"initial_variance": 124.0, "process_noise": 4.1e-5, "length": 8, "dim": 2}),
    Odd("lds/lemmaC_1", {"dim": 1, "samples": 1, "seed": 8}),
    *(Odd("lds/stationarity", {"setting": s, "length": T, "dim": 2, "window": w, "seed": 5})
      for s, T, w in (("a", 4, 2), ("b", 7, 1))),
    *(Odd("lds/optimum_s", {**settings, "length": 5 + T}) for T, settings in (
        (0, {"dim": 1}), (2, {"dim": 2, "setting": "b"}), (7, {"dim": 3, "seed": 9}),
    )),
    Odd("lds/optimum_s", {"dim": 3, "length": 8, "window": 3}, "fails"),
    Odd("lds/optimum_s", {"dim": 1, "length": 12, "window": 3}, "undecided"),
    Odd("lds/pcg", {"samples": 320, "setting": "b"}, "undecided"),
    Odd("lds/pcg", {"dim": 3, "samples": 20_000, "seed": 2}),
    Odd("lds/pcg", {"length": 5, "seed": 85, "samples": 5000}, "fails"),  # the first draw has no second step
    Odd("lds/lemma4_1", {"window": 3, "length": 8, "dim": 2}),
    *(Odd("lds/lemma3_1", {"window": s, "length": T}) for s, T in ((1, 3), (5, 7), (4, 60))),
    *(Odd("lds/lemmaC_1", {"dim": d, "samples": 1, "seed": 3}) for d in (1, 2, 9)),
    Odd("lds/theorem4_1", {**ONE, **NO_NOISE, "spectrum": [1.0], "length": 3}, exact={"constant": "1/5"}),
    Odd("lds/theorem4_1", {"setting": "b", "dim": 2, "length": 6, "spectrum": [-0.5, 0.25]}),
    Odd("lds/theorem4_1", {"process_noise": 0.25, "length": 3, "dim": 1, "spectrum": [0.0]},
        exact={"constant": "0"}),
]  # fmt: skip
SHORT, PAIR, FEW = {"length": 6, "dim": 2}, {"length": 10, "dim": 2}, {"dim": 2, "samples": 2}
SIMULATED = {"samples": 5000}
MUTANTS = [
    Mutant("lds/forgetting", "A * filter_gain(A, c, process, noise)", "filter_gain(A, c, process, noise)"),
    Mutant("lds/forgetting", "(y, first, p.gain)", "(y, first, 2 * p.gain)", settings=FEW),
    Mutant("lds/forgetting", "found - sum(terms[:-1])", "found - sum(terms)", "undecided", FEW),
    Mutant("lds/lemma3_1", "largest(layer(y, s, restricted)", "largest(layer(y, s, shift)"),
    Mutant("lds/lemma3_1", "layer([*y[:-1], fmpq(0)], s, shift)", "layer(y, s, shift)"),
    Mutant("lds/lemma3_1", "layer(y, s, erase)", "layer(y, s, restricted)", "undecided"),
    Mutant("lds/lemma4_1", "left(True)", "left(False)", settings=SHORT),
    Mutant("lds/lemma4_1", "if sum(times) % 2 == 0:", "if sum(times) % 2 == 1:", settings=SHORT),
    Mutant("lds/lemma4_1", "left(False), of", "left(True), of", "undecided", SHORT),
    Mutant("lds/lemmaC_1", "(observability(A, c)", "(observability(A, 0 * c)"),
    Mutant("lds/lemmaC_1", "A[max(i, 1), max(i, 1)]", "A[i, i]", "undecided"),
    Mutant("lds/lemmaD_2", "covariance(A, c, T, noise, process)", "covariance(A, c, T, twice, process)"),
    Mutant("lds/lemmaD_2", "self.sequences(T)", "self.sequences(T, [0.5] * self.dim)"),
    Mutant("lds/optimum_s", "risk * (1 - PROVED)", "risk * (1 + ABOVE)", "undecided", PAIR),
    Mutant("lds/optimum_s", "of_pattern.risk * (1 + ABOVE)", "of_pattern.risk", "undecided", PAIR),
    Mutant("lds/optimum_s", "in (pattern, elsewhere", "in (elsewhere, elsewhere", "undecided", PAIR),
    Mutant("lds/pcg", "one.gamma(one.q) + one.P", "one.gamma(one.q) * one.H + one.P", settings=SIMULATED),
    Mutant("lds/pcg", "gd.mean - pcg.mean", "pcg.mean - gd.mean", settings=SIMULATED),
    Mutant("lds/pcg", "gamma(one.q) * one.H + one.P)", "gamma(one.q) + one.P)", "undecided", SIMULATED),
    Mutant("lds/stationarity", "gap[i, i] += noise.start", "gap[i, i] -= noise.start", settings=SHORT),
    Mutant("lds/stationarity", "INSIDE ** (2 * k)", "fmpq(1)", "undecided", SHORT),
    Mutant("lds/stationarity", "fmpq(6, 5)", "fmpq(1, 5)", "undecided", SHORT),
    Mutant("lds/theorem4_1", "/ layer.form[1, 1]", "/ layer.form[0, 2]"),
    Mutant("lds/theorem4_1", "-c * slope * y[-2]", "-c * slope * y[-1]", settings=SHORT),
    Mutant("lds/theorem4_1", "_at_14(c + 1)", "_at_14(c)", "undecided", SHORT),
]  # fmt: skip
