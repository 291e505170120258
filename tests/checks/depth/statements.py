"""depth's statements: settings with their verdict, and wrong lines that must turn it."""

from tests.checks.statements import Mutant, Odd

SMALL = {"layers": 3, "dim": 5, "context": 10}
ODD = [
    Odd("depth/iso_one_layer", {"dim": 1, "context": 1}, "fails", {"least": "1/2", "distance": "1/4"}),
    Odd("depth/iso_one_layer", {"dim": 7, "context": 10**12}, "fails"),
    Odd("depth/iso_closed_form", SMALL),
    Odd("depth/iso_closed_form", {"layers": 6, "dim": 1, "context": 4}),
    Odd("depth/iso_closed_form", {"layers": 5, "dim": 9, "context": 9}),
    Odd("depth/iso_flow", {"layers": 3, "dim": 2, "context": 1}),
    Odd("depth/balance_is_saddle", {"layers": 6, "dim": 2, "context": 5}),
    Odd("depth/full_matrices", {"layers": 1, "dim": 2}),
    Odd("depth/full_matrices", {"layers": 4, "dim": 5}),
    Odd("depth/full_matrices", {"layers": 3, "dim": 1}),
    Odd("depth/untied", {"layers": 8, "dim": 1, "context": 1}),
    Odd("depth/fs_exponent", {"nu": 6.0, "beta": 6.0}, "fails"),
    Odd("depth/fs_exponent", {"nu": 1.25, "beta": 2.2}, "fails"),
    Odd("depth/fs_law", {"layers": 2, "time": 0.0, "eigenvalue": 4.0, "nu": 6.0, "beta": 6.0}),
    Odd("depth/time_exponent", {"nu": 4.0, "beta": 6.0}),
    Odd("depth/depth_exponent", {"nu": 1.0, "beta": 0.5}),
    Odd("depth/depth_exponent_separate", {"nu": 1.5, "beta": 0.75, "layers": 24}),
    Odd("depth/depth_exponent_separate", {"nu": 6.0, "beta": 6.0, "layers": 200}),
    Odd("depth/flow_leaves_balance", {"layers": 7, "dim": 64, "nu": 6.0, "beta": 6.0}),
]
MUTANTS = [
    Mutant("depth/iso_flow", "rate(g)", "2 * rate(g)"),
    Mutant("depth/iso_one_layer", "(1 + self.alpha) ** 2", "(1 + self.alpha)", "holds"),
    Mutant("depth/iso_closed_form", "alpha**k for k in range(L + 1)", "alpha**k for k in range(L)"),
    Mutant("depth/long_context", "- sigma.inv() * sigma)", "- sigma)"),
    Mutant("depth/fs_solution", "fmpq(4)", "fmpq(2)", "holds"),
    Mutant("depth/fs_law", "else fmpq(2)", "else fmpq(4)"),
    Mutant("depth/fs_exponent", "beta / (nu + nu * beta + 1)", "beta / (beta + 2 + 1 / nu)", "holds"),
    Mutant("depth/ood", "other * gamma / L", "gamma * other / L"),
    Mutant("depth/rrs_isotropic", "corner - rate", "corner - d * rate"),
    Mutant("depth/time_exponent", "slope + beta / (2 + beta)", "slope + beta / (2 + nu)"),
    Mutant("depth/depth_exponent", "found + beta,", "found + nu,"),
    Mutant("depth/untied", "L * slope - tied", "slope - tied"),
    Mutant("depth/balance_is_saddle", "split + 2 * formula", "split + formula"),
    Mutant("depth/full_matrices", "mean[i, i] ** 2", "9 * mean[i, i] ** 2"),
    Mutant("depth/depth_exponent_separate", "bound - found", "found - bound"),
    Mutant("depth/flow_leaves_balance", "+ 2 * mean_trace(moments, rate))", "+ mean_trace(moments, rate))"),
]  # fmt: skip
