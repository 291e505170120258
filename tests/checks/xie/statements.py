"""xie's statements: settings with their verdict, and wrong lines that must turn it."""

from tests.checks.statements import Mutant, Odd

SMALL = {"dim": 1, "context": 1}
ILL = {"dim": 3, "context": 10**12, "prior_mean": [1e-9, 1e9, 0.0]}
AT_PRIOR = {"dim": 2, "context": 3, "prior_mean": [0.5, 2.0], "guess_vector": [0.5, 2.0], "guess_bias": 0.0}

ODD = [
    *(Odd(f"xie/{name}", settings) for name in ("gd_lower_bound", "theorem1", "theorem4")
      for settings in (SMALL, ILL)),
    *(Odd("xie/ltb", settings, "fails") for settings in (SMALL, ILL, {"dim": 40, "context": 3})),
    Odd("xie/gd_lower_bound", {"dim": 24, "context": 1, "prior_mean_norm": 1e-300}),
    Odd("xie/theorem1", {"dim": 4, "context": 2, "prior_mean": [0, 0, 0, 0]}),
    Odd("xie/prior_gap", SMALL, exact={"slope": "2/3"}),
    Odd("xie/prior_gap", {**ILL, "guess_vector": [1e-300, 0, 0]}),
    Odd("xie/theorem1", AT_PRIOR, exact={"saturates_at": "2", "saturates_at_linear_guess": "1"}),
    Odd("xie/theorem1", {"dim": 12, "context": 3, "prior_mean_norm": 0.0}),
    Odd("xie/theorem2", {"dim": 1, "contexts": [1]}, "fails", {"risk_by_context": ["4"]}),
    Odd("xie/theorem2", {"dim": 3, "prior_mean": [1e-9, 1e9, 0.0]}, "fails"),
    Odd("xie/theorem4", {"dim": 2, "context": 10**15, "prior_mean": [0, 0], "eta": 1e9}),
]  # fmt: skip
MUTANTS = [
    Mutant("xie/gd_lower_bound", "(d * C + 2), ", "(d * C + 3), "),
    Mutant("xie/gd_lower_bound", "descent_risk(self.dim, share)", "descent_risk(self.dim, 2 * share)"),
    Mutant("xie/gd_lower_bound", "share, self.mean).least()", "share).least()", "undecided"),
    Mutant("xie/ltb", "= Heads(self.mean, share), Heads", "= Heads(self.mean, 0), Heads", "undecided"),
    Mutant("xie/ltb", "0 * w_star", "w_star", "undecided"),
    Mutant("xie/prior_gap", "fmpq(2, d * C + 2)", "fmpq(2, d * C + 3)"),
    Mutant("xie/theorem1", "few = heads_of(X)", "few = heads_of(X)[:-1]"),
    Mutant("xie/theorem1", "layer.lost(enough - 1)", "layer.lost(enough)"),
    Mutant("xie/theorem1", "(d * self.context + 2)", "(d * self.context)"),
    Mutant("xie/theorem1", "zero, heads, about", "zero, [(0 * b, keys) for b, keys in heads], about"),
    Mutant("xie/theorem4", "first, [best], ", "first, [(0 * best[0], best[1])], "),
    Mutant("xie/theorem4", "prompt.block(*made))", "prompt.block(*blind))"),
    Mutant("xie/theorem4", "guessed_of(*block)", "guessed_of(*block[:3], 2 * block[3])"),
    Mutant("xie/theorem2", "about = norm(limit.", "about = norm(layers[0].", "holds"),
    Mutant("xie/theorem2", "wrong = [descent_head(self.mean, 1)]", "wrong = one_head", "undecided"),
    Mutant("xie/theorem4", "4 * (d + 1) ** 2", "4 * d**2"),
    Mutant("xie/theorem4", "- prompt.step(mean, eta))", "- prompt.step(mean, 2 * eta))"),
    Mutant("xie/theorem4", "Heads(mean, fmpq(1, C), mean) for", "Heads(mean, fmpq(1, C)) for"),
]  # fmt: skip
