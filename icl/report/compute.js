"use strict";
// The closed forms of icl.theory: eq. (6) and its risk (closed_forms), the best point of Theorem 3's set
// (invariant_risk, wishart), the gap of an initial guess (initial_guess). Integers are exact.
const compute = (() => {
  const MOST_DIM = 8;
  const MOST_CONTEXT = 1e6;
  const MOST_LAYERS = 4;
  const BITS = 256n; // of a root's fraction
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  // Eigenvalues, and eigenvectors as columns, of a symmetric matrix, by Jacobi's rotations.
  const eigen = (matrix) => {
    const d = matrix.length;
    const A = matrix.map((row) => [...row]);
    const V = A.map((_, i) => A.map((__, j) => Number(i === j)));
    for (let sweep = 0; sweep < 60; sweep++) {
      let rotated = false;
      for (let p = 0; p < d; p++) {
        for (let q = p + 1; q < d; q++) {
          if (Math.abs(A[p][q]) <= 1e-18 * Math.sqrt(Math.abs(A[p][p] * A[q][q]))) continue;
          rotated = true;
          const theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
          const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
          const c = 1 / Math.hypot(t, 1);
          const s = t * c;
          for (let k = 0; k < d; k++) [A[k][p], A[k][q]] = [c * A[k][p] - s * A[k][q], s * A[k][p] + c * A[k][q]];
          for (let k = 0; k < d; k++) [A[p][k], A[q][k]] = [c * A[p][k] - s * A[q][k], s * A[p][k] + c * A[q][k]];
          for (let k = 0; k < d; k++) [V[k][p], V[k][q]] = [c * V[k][p] - s * V[k][q], s * V[k][p] + c * V[k][q]];
          A[p][q] = A[q][p] = 0;
        }
      }
      if (!rotated) break;
    }
    return { values: A.map((row, i) => row[i]), vectors: V };
  };

  // Eq. (6): ((n + 1)/n Sigma + tr(Sigma)/n I)^-1.
  const preconditioner = (Sigma, n) => {
    const { values, vectors } = eigen(Sigma);
    const trace = sum(Sigma.map((row, i) => row[i]));
    const inverse = values.map((value) => n / ((n + 1) * value + trace));
    return vectors.map((row) => vectors.map((other) => sum(inverse.map((value, k) => row[k] * value * other[k]))));
  };

  // The risk of eq. (6): sum over eigenvalues of l (l + tr) / ((n + 1) l + tr).
  const leastRisk = (Sigma, n) => {
    const { values } = eigen(Sigma);
    const trace = sum(values);
    return sum(values.map((value) => value * (value + trace) / ((n + 1) * value + trace)));
  };

  // E prod_j tr W^(parts_j), W ~ Wishart_d(n, I), by Stein's lemma in the factor of W.
  const wishart = (d, n) => {
    const known = new Map();
    const expectation = (parts) => {
      const powers = parts.filter((part) => part).sort((a, b) => b - a);
      const key = powers.join();
      const ones = BigInt(d) ** BigInt(parts.length - powers.length);
      if (!powers.length) return ones;
      if (!known.has(key)) {
        const [k, ...others] = powers;
        let total = BigInt(n + k - 1) * expectation([k - 1, ...others]);
        for (let i = 1; i < k; i++) total += expectation([i, k - 1 - i, ...others]);
        others.forEach((power, j) => {
          total += BigInt(2 * power) * expectation([k - 1 + power, ...others.filter((_, i) => i !== j)]);
        });
        known.set(key, total);
      }
      return ones * known.get(key);
    };
    return (degree) => expectation([degree]);
  };

  // A determinant of integers, by Bareiss' elimination; the leading minors of a moment matrix are positive.
  const determinant = (rows) => {
    const A = rows.map((row) => [...row]);
    let sign = 1n;
    let last = 1n;
    for (let k = 0; k < A.length - 1; k++) {
      const pivot = A.findIndex((row, i) => i >= k && row[k] !== 0n);
      if (pivot < 0) return 0n;
      if (pivot !== k) {
        [A[k], A[pivot]] = [A[pivot], A[k]];
        sign = -sign;
      }
      for (let i = k + 1; i < A.length; i++) {
        for (let j = k + 1; j < A.length; j++) A[i][j] = (A[i][j] * A[k][k] - A[i][k] * A[k][j]) / last;
      }
      last = A[k][k];
    }
    return A.length ? sign * A[A.length - 1][A.length - 1] : 1n;
  };

  const size = (integer) => (integer < 0n ? -integer : integer).toString(16).length * 4;
  const quotient = (above, below) => {
    const shift = 80 - size(above) + size(below);
    const digits = shift >= 0 ? (above << BigInt(shift)) / below : above / (below << BigInt(-shift));
    return Number(digits) * 2 ** -shift;
  };

  // The roots of a polynomial with integer coefficients, highest power first, whose roots are real, distinct
  // and positive: each lies between two of the derivative's. In units of 2^-BITS.
  const roots = (coefficients) => {
    const degree = coefficients.length - 1;
    if (degree < 1) return [];
    const at = (x) => coefficients.reduce((total, c, i) => total * x + (c << (BITS * BigInt(i))), 0n);
    const slope = coefficients.slice(0, -1).map((c, i) => c * BigInt(degree - i));
    const largest = -(coefficients[1] << BITS) / coefficients[0] + 1n; // the sum of all
    const ends = [0n, ...roots(slope), largest];
    return ends.slice(1).map((end, i) => {
      let [low, high] = [ends[i], end];
      const below = at(low) > 0n;
      while (high - low > 1n) {
        const middle = (low + high) / 2n;
        if (at(middle) > 0n === below) low = middle; else high = middle;
      }
      return low;
    });
  };

  // The best point of Theorem 3's set at L layers: a_1 <= ... <= a_L and its risk. With t an eigenvalue of
  // W ~ Wishart_d(n, I) the risk is the least E tr q(W)^2 over q of degree L with q(0) = 1, and q has the roots
  // t = n / a_l. By Cramer's rule in the moments E tr W^k.
  const bestPoint = (d, n, L) => {
    const moment = wishart(d, n);
    const moments = [...Array(2 * L + 1).keys()].map(moment);
    const every = [...Array(L + 1).keys()];
    const rows = every.map((i) => every.map((j) => moments[i + j]));
    const minor = (column) => determinant(rows.slice(1).map((row) => row.filter((_, j) => j !== column)));
    const coefficients = every.map((j) => (j % 2 ? -1n : 1n) * minor(j) * BigInt(n) ** BigInt(j));
    return {
      scalars: roots(coefficients).map((root) => quotient(root, 1n << BITS)),
      risk: quotient(determinant(rows), minor(0)),
    };
  };

  // (m - v)^T Sigma (m - v) + b^2: the mean square of the guess <v, x_q> + b against <m, x_q>.
  const guessError = (Sigma, mean, vector, bias) => {
    const difference = mean.map((value, i) => value - vector[i]);
    return sum(Sigma.map((row, i) => difference[i] * sum(row.map((value, j) => value * difference[j])))) + bias ** 2;
  };

  // The least risk over any number of heads, less that of the best preconditioned step from the mean.
  const gap = (Sigma, C, error) => 2 / (Sigma.length * C + 2) * error;

  // What H heads lose at least, for Sigma = I.
  const lost = (d, C, H, error) => {
    const kappa = 2 * Math.max(d - H, 0) * (d * C + 2) / (C * (H * C + 2));
    const rho = 2 * d * (1 + (d + 1) / C);
    return (C / (d * C + 2)) ** 2 * kappa * rho / (kappa + rho) * error;
  };

  // What is typed. Each throws an Error whose message is the line that is shown.
  const refuse = (text) => { throw new Error(text); };
  const numbers = (name, text) => text.split(/[\s,]+/).filter(Boolean).map((word) => {
    const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word) ? Number(word) : NaN;
    return Number.isFinite(value) ? value : refuse(`${name}: ${word} is not a number`);
  });
  const one = (name, text) => {
    const found = numbers(name, text);
    return found.length === 1 ? found[0] : refuse(`${name}: must be one number`);
  };
  const integer = (name, text, low, high) => {
    const value = one(name, text);
    const fits = Number.isInteger(value) && value >= low && value <= high;
    return fits ? value : refuse(`${name}: must be a whole number from ${low} to ${high}`);
  };
  const vector = (name, text, d) => {
    const found = numbers(name, text);
    if (found.length === 1) return Array(d).fill(found[0]);
    return found.length === d ? found : refuse(`${name}: must be ${d} numbers, as many as Sigma has rows, or one for all`);
  };
  const covariance = (text) => {
    const rows = text.split(/[;\n]|\]\s*,?\s*\[/).map((row) => row.replace(/[[\]]/g, " ")).filter((row) => row.trim());
    const found = rows.map((row) => numbers("Sigma", row));
    const d = rows.length === 1 ? found[0].length : rows.length;
    const each = "d eigenvalues in one line, or d lines of d numbers";
    if (!d) refuse(`Sigma: type ${each}`);
    if (d > MOST_DIM) refuse(`Sigma: has ${d} rows or eigenvalues, at most ${MOST_DIM} here`);
    if (rows.length === 1) {
      const bad = found[0].find((value) => value <= 0);
      if (bad !== undefined) refuse(`Sigma: has the eigenvalue ${bad}, all must be positive`);
      return { Sigma: found[0].map((value, i) => found[0].map((_, j) => (i === j ? value : 0))), diagonal: found[0] };
    }
    const short = found.findIndex((row) => row.length !== d);
    if (short >= 0) refuse(`Sigma: line ${short + 1} has ${found[short].length} numbers, not ${d}; type ${each}`);
    const scale = Math.max(...found.flat().map(Math.abs));
    found.forEach((row, i) => row.forEach((value, j) => {
      if (Math.abs(value - found[j][i]) > 1e-12 * scale) {
        refuse(`Sigma: must be symmetric, and has ${value} at (${i + 1}, ${j + 1}), ${found[j][i]} at (${j + 1}, ${i + 1})`);
      }
    }));
    const Sigma = found.map((row, i) => row.map((value, j) => (value + found[j][i]) / 2));
    const least = Math.min(...eigen(Sigma).values);
    if (!(least > 1e-14 * scale)) refuse(`Sigma: must be positive definite, its least eigenvalue is ${least.toPrecision(3)}`);
    return { Sigma, diagonal: null };
  };

  // The forms: what is typed for each -> rows of a name and a value.
  const forms = {
    one_layer: ({ Sigma, diagonal, n }) => {
      const A = preconditioner(Sigma, n);
      return [
        diagonal ? ["eigenvalues of A, in the order of Sigma's", A.map((row, i) => row[i])] : ["A", A],
        ["least risk", leastRisk(Sigma, n)],
        ["risk at zero weights", sum(Sigma.map((row, i) => row[i]))],
      ];
    },
    best_point: ({ Sigma, n }) => [...Array(MOST_LAYERS).keys()].flatMap((l) => {
      const { scalars, risk } = bestPoint(Sigma.length, n, l + 1);
      return [[`L = ${l + 1}: a`, scalars], [`L = ${l + 1}: risk`, risk]];
    }),
    guess: ({ Sigma, n, typed }) => {
      const d = Sigma.length;
      const [mean, guess] = ["w*", "v"].map((name) => vector(name, typed[name], d));
      const heads = integer("H", typed.H, 0, 1000);
      const error = guessError(Sigma, mean, guess, one("b", typed.b));
      const step = leastRisk(Sigma, n);
      const isotropic = Sigma.every((row, i) => row.every((value, j) => value === Number(i === j)));
      return [
        ["gap", gap(Sigma, n, error)],
        ["best step from w*", step],
        ["least risk, any number of heads", step + gap(Sigma, n, error)],
        [`${heads} heads lose at least`, isotropic ? lost(d, n, heads, error) : "known at Sigma = I only"],
      ];
    },
  };

  // Sigma and n, as they are typed.
  const setting = (texts) => ({ ...covariance(texts.Sigma), n: integer("n", texts.n, 1, MOST_CONTEXT) });

  return { setting, forms, preconditioner, leastRisk, bestPoint, guessError, gap, lost };
})();
