"""Algorithms that transformers are compared with. `predict(prompt)`, as of a model, returns (R, B)
predictions.

descent             gradient descent, preconditioned by Sigma^{-1} or not, Chebyshev's step sizes
step_search         best step sizes on a draw of contexts
least_squares       least squares of minimum norm, ridge
discrete_mmse       the posterior mean over finitely many tasks, dMMSE
conjugate_gradient  preconditioned, from any first direction
kalman              the Kalman filter of known linear systems
newton              Newton's iteration for the inverse, of any order

On points, not prompts: damped Newton for the logistic loss, icl.tasks.logistic_loss.
"""

from icl.algorithms.conjugate_gradient import ConjugateGradient
from icl.algorithms.descent import GradientDescent, chebyshev_steps
from icl.algorithms.discrete_mmse import DiscreteMMSE
from icl.algorithms.kalman import KalmanFilter
from icl.algorithms.least_squares import LeastSquares, RidgeRegression
from icl.algorithms.newton import newton_iteration
from icl.algorithms.step_search import Contexts, Steps, search_gd
from icl.tasks.logistic_loss import LogisticLoss, damped_newton

__all__ = [
    "ConjugateGradient",
    "Contexts",
    "DiscreteMMSE",
    "GradientDescent",
    "KalmanFilter",
    "LeastSquares",
    "LogisticLoss",
    "RidgeRegression",
    "Steps",
    "chebyshev_steps",
    "damped_newton",
    "newton_iteration",
    "search_gd",
]
