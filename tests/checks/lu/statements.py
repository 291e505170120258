"""lu's statements: settings with their verdict, and wrong lines that must turn it."""

from tests.checks.statements import Mutant, Odd

DIMS = {"dims": [8, 12, 16, 24]}
FEW = {"draws": 20, "dim": 8}
WRONG = {"alpha": 10, "kappa": 2, "rho": 0.5, "draws": 100, **DIMS}
LINE = {"alpha": 2, "tau": 1.5, "rho": 0.3, "ridge": 0.1, "dims": [4, 6, 8]}
ODD = [
    # k is a whole number at none of the dims
    Odd("lu/ridgeless_icl", {"kappa": 2.3, "tau": 0.7, "rho": 0.0, "draws": 100, "dims": [6, 8, 12, 16]}),
    Odd("lu/exact_risk", {"dim": 1, "context": 1, "tasks": 1, "seed": 1}),
    Odd("lu/exact_risk", {"law": "gaussian", "rho": 0.0}),
    Odd("lu/exact_risk", {"dim": 9, "context": 10**9, "tasks": 40, "rho": 1e-300}),
    Odd("lu/finite_d", LINE),
    Odd("lu/nonmonotone", {"kappa": 0.2, "tau": 2, "draws": 60, "dim": 12}),
    Odd("lu/nonmonotone", {"tau": 20, "alpha": 300, "dim": 8, "draws": 60}),
    Odd("lu/nonmonotone", {"kappa": 50, "tau": 50, "rho": 0.01, **FEW}, "undecided"),
    Odd("lu/nonmonotone", {"alpha": 6.87, "rho": 0.5, "kappa": 0.0133, "tau": 0.241, "dim": 5}, "undecided"),
    Odd("lu/threshold", {"dim": 3}),
    Odd("lu/threshold", {"dim": 7, "alpha": 0.128, "kappa": 0.000642, "rho": 0.0445, "draws": 418}),
    Odd("lu/transition", {"dim": 4, "rho": 0.357}, "undecided"),
    Odd("lu/transition", {"dim": 2, "rho": 0.0}, "undecided"),
    Odd("lu/threshold", {"draws": 20, "seed": 1}, "undecided"),
    Odd("lu/threshold", {"alpha": 1e-4, "kappa": 1e-4}),
    Odd("lu/threshold", {"kappa": 1e-4, "rho": 0.0}, "undecided"),
    Odd("lu/ridgeless_icl", {"kappa": 1e-4, "rho": 0.0, "tau": 2, "dims": [4, 6, 8]}, "undecided"),
    Odd("lu/ridgeless_icl", {"alpha": 1e-4, "tau": 2, "dims": [4, 6, 8]}, "undecided"),
    Odd("lu/finite_d", {"ridge": 10, "tau": 1, "dims": [4, 6, 8], "draws": 100}, "undecided"),
    Odd("lu/finite_d", {"alpha": 0.03, "tau": 0.125, "rho": 0.7, "dims": [8, 12, 16]}, "undecided"),
    Odd("lu/transition", {"dim": 4, "kappas": [2.0]}, "undecided"),
    Odd("lu/threshold", {"dim": 10, "kappa": 3, "alpha": 1}),
    Odd("lu/transition", {"dim": 2, "rho": 0.5}),
    Odd("lu/transition", {"kappas": [0.3, 1], "seed": 2, "rho": 0.0}),
]
MUTANTS = [
    Mutant("lu/ridgeless_icl", "(limit.icl, half", "(1.5 * limit.icl, half", settings=WRONG),
    Mutant("lu/ridgeless_icl", ".errors(at.eff", ".errors(2 * at.eff", settings=WRONG),
    Mutant("lu/ridgeless_icl", "FiniteRisk(TaskMoments.new(d, self.rho)", "FiniteRisk(tasks", settings=WRONG),
    Mutant("lu/ridgeless_icl", "(limit.idg", "(limit.icl", settings={"draws": 100, **DIMS}),
    Mutant("lu/exact_risk", "risk_of_tokens(Gamma, tasks, n,", "risk_of_tokens(Gamma, tasks, n + 1,"),
    Mutant("lu/exact_risk", "form(tasks, d, 2 * n,", "form(tasks, d, n,", "undecided"),
    Mutant("lu/finite_d", "at.prompts, self", "at.prompts + d, self", settings={"draws": 60}),
    Mutant("lu/nonmonotone", "limit.icl - error(best)", "-error(best)", settings=FEW),
    Mutant("lu/nonmonotone", "high_T - low_T)", "high_T - high_T[::-1])", "undecided", settings=FEW),
    Mutant("lu/threshold", "(d * d, weights, weights + d)", "(weights, d * d, weights + d)"),
    Mutant("lu/threshold", "hstack([sums_ND, squares_N1])", "hstack([sums_ND, sums_ND[:, :1]])", "undecided"),
    Mutant("lu/transition", "max(1 - kappa, fmpq(0))", "max(1 - kappa * kappa, fmpq(0))"),
    Mutant("lu/transition", "self.dim, LONG * self.dim", "self.dim, self.dim", "undecided"),
]  # fmt: skip
