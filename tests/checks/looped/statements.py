"""looped's statements: settings with their verdict, and wrong lines that must turn it."""

from tests.checks.statements import Mutant, Odd

ILL = {"covariance": [[1.0, 0.999], [0.999, 1.0]]}
WITNESS = {"witness_numerator": "1516075440567119117", "witness_denominator": "20000000000000000000"}
ODD = [
    Odd("looped/minimiser_symmetric", {"layers": 2}, "fails", WITNESS),
    Odd("looped/minimiser_symmetric", {"layers": 3, "context": 14}, "fails"),  # the scalar is a local minimum
    Odd("looped/minimiser_symmetric", {"layers": 2, "context": 15}, "fails"),
    Odd("looped/minimiser_symmetric", {"layers": 4, "context": 10**6}, "fails"),
    Odd("looped/minimiser_symmetric", {"layers": 4, "context": 100, **ILL}, "fails"),
    Odd("looped/minimiser_symmetric", {"dim": 5, "layers": 3, "context": 50}, "fails"),
    Odd("looped/minimiser_symmetric", {"dim": 3, "context": 60, "layers": 4}, "fails"),
    Odd("looped/minimiser_symmetric", {"dim": 5, "layers": 2, "context": 20}, "undecided"),
    Odd("looped/minimiser_symmetric", {"layers": 3, "context": 3}, "undecided"),
    Odd("looped/minimiser_symmetric", {"dim": 1, "layers": 4}),
    Odd("looped/minimiser_symmetric", {"dim": 3, "layers": 1}),
    Odd("looped/minimiser_symmetric", {"context": 14}),
    Odd("looped/minimiser_symmetric", {"context": 1}),
    Odd("looped/gain", {"layers": 4, "context": 100, **ILL}),
    Odd("looped/gain", {"dim": 5, "layers": 3, "context": 50}),
    Odd("looped/gain", {"dim": 10, "layers": 3, "context": 50}),
    Odd("looped/gain", {"dim": 1}, "fails"),
    Odd("looped/gain", {"layers": 1}, "fails"),
    Odd("looped/gain", {"layers": 2, "context": 14}, "fails"),
    Odd("looped/scalar_is_saddle", {"layers": 6, "context": 10**12, "most": 1}),
    Odd("looped/scalar_is_saddle", {"dim": 10, "context": 50, "layers": 4, "most": 1}),
    Odd("looped/scalar_is_saddle", {"context": 14, "most": 16}, "fails", {"first_context": "15"}),
    Odd("looped/scalar_is_saddle", {"context": 2, "dim": 5, "most": 1}, "fails"),
    Odd("looped/scalar_is_saddle", {"layers": 1, "most": 1}, "fails"),
    Odd("looped/long_prompts", {"layers": 8, "context": 1}, exact={"limit_curvature": "-680249880"}),
    Odd("looped/long_prompts", {"dim": 20, "layers": 4}, exact={"first_context": "38"}),
    Odd("looped/long_prompts", {"dim": 5, "layers": 4, "context": 1}, exact={"limit_curvature": "-4904"}),
    Odd("looped/limit_gain", {"layers": 8, "context": 1}),
    Odd("looped/limit_gain", {"layers": 2, "context": 10**12, **ILL}),
    Odd("looped/limit_gain", {"layers": 3}, exact={"slope": "0"}),
    Odd("looped/rates", {"layers": 8, "dim": 4, "speed": 1e-6, "samples": 2}),
    Odd("looped/rates", {"layers": 3, "dim": 100, "speed": 1e6, "samples": 20}),
    Odd(
        "looped/rates", {"layers": 4, "dim": 9, "speed": 1, "seed": 5}, exact={"turned": "0", "separate": "0"}
    ),
    Odd("looped/two_loops", {"last": 13}, "fails", {"last": "1"}),
    Odd("looped/two_loops", {"last": 15}, "fails", {"last": "-1"}),
    Odd("looped/symmetric_optimum_is_scalar", {"context": 1, "layers": 3}),
    Odd("looped/symmetric_optimum_is_scalar", {"context": 2, "layers": 8}),
    Odd("looped/symmetric_optimum_is_scalar", {"dim": 3, "layers": 3}),
    Odd("looped/symmetric_optimum_is_scalar", {"dim": 9, "layers": 7, "context": 1}),
    Odd("looped/symmetric_optimum_is_scalar", {"dim": 5, "layers": 1, "context": 2}),
    Odd("looped/loops_beyond_training", {"layers": 2}, "fails"),
    Odd("looped/loops_beyond_training", {"layers": 3, "context": 100}),
    Odd("looped/shift", {"context": 100, "scales": [0.7, 1.25]}),
    Odd("looped/shift", {"scales": [2.0]}, "fails"),
    Odd("looped/shift", {"stretches": [0.55, 1.8]}),
    *(Odd("looped/shift", {"layers": 7, "context": n}, v) for n, v in ((8, "fails"), (9, "holds"))),
    *(
        Odd("looped/shift", {"layers": L, "context": n}, verdict)
        for L, low, high in ((4, 14, 424), (5, 10, 1316), (6, 9, 2588))
        for n, verdict in ((low - 1, "fails"), (low, "holds"), (high - 1, "holds"), (high, "fails"))
    ),
    Odd("looped/shift", {"stretches": [10.0]}, "fails"),
    Odd("looped/flow_finds_it", {"context": 100, "seed": 2, "starts": 2, "steps_taken": 600}),
    Odd("looped/flow_finds_it", {"starts": 1, "steps_taken": 50}, "undecided"),
    Odd("looped/flow_finds_it", {"context": 14, "layers": 2, "starts": 1, "steps_taken": 300}, "undecided"),
]
MUTANTS = [
    Mutant("looped/minimiser_symmetric", "else not lower", "else lower", "holds"),
    Mutant("looped/minimiser_symmetric", "(wrong) / lowest - 1", "(found.a) / lowest - 2", "undecided"),
    Mutant("looped/gain", "gain > 0", "gain > 1", "undecided"),
    Mutant("looped/gain", "(wrong) / least", "(wrong) / least / 2", "undecided"),
    Mutant("looped/scalar_is_saddle", "antisymmetric_curvature, step", "symmetric_curvature, step"),
    Mutant("looped/long_prompts", "-evaluate(first.anti", "evaluate(first.anti"),
    Mutant("looped/limit_gain", "1 - share", "share - 1"),
    Mutant("looped/limit_gain", "derivative()(0) / 2", "derivative()(0)"),
    Mutant("looped/limit_gain", "1 - scalar", "1 + scalar", "undecided"),
    Mutant("looped/rates", "turned(0)", "turned(1)"),
    Mutant("looped/rates", "(L + 1), fmpq", "L, fmpq"),
    Mutant("looped/rates", "2 * L + 1), L) - 1, ", "2 * L + 1), L) - 2, "),
    Mutant("looped/two_loops", "least = all(", "least = not all(", "undecided"),
    Mutant("looped/symmetric_optimum_is_scalar", "is_positive(along_h)", "is_positive(along_k)"),
    Mutant("looped/symmetric_optimum_is_scalar", "evaluate(along_k", "evaluate(along_h", "undecided"),
    Mutant("looped/loops_beyond_training", "found.a, found.b) for", "found.a, 2 * found.b) for"),
    Mutant("looped/shift", "at(terms, scale * a * mean", "at(terms, scale * scale * scale * a * mean"),
    Mutant("looped/flow_finds_it", "self._exact(path_TDD[-1]", "self._exact(path_TDD[10]", "undecided"),
]  # fmt: skip
