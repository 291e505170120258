"""Algorithms that transformers are compared with. `predict(prompt)`, as of a model, returns (R, B)
predictions.

descent             gradient descent, preconditioned by Sigma^{-1} or not, Chebyshev's step sizes, GD++
step_search         best step sizes on a draw of contexts
least_squares       least squares of minimum norm, ridge
discrete_mmse       the posterior mean over finitely many tasks, dMMSE
conjugate_gradient  preconditioned, from any first direction
kalman              the Kalman filter of known linear systems
newton              Newton's iteration for the inverse, of any order

On points, not prompts: damped Newton and gradient descent of the logistic loss, icl.tasks.logistic_loss.
"""

from icl.algorithms.conjugate_gradient import ConjugateGradient
from icl.algorithms.descent import GDPlusPlus, GradientDescent, chebyshev_steps
from icl.algorithms.discrete_mmse import DiscreteMMSE
from icl.algorithms.kalman import KalmanFilter
from icl.algorithms.least_squares import LeastSquares, RidgeRegression
from icl.algorithms.newton import NewtonIteration, newton_iteration
from icl.algorithms.step_search import Contexts, Steps, search_gd, search_gd_plus_plus
from icl.tasks.logistic_loss import LogisticLoss, damped_newton, gradient_descent

__all__ = [
    "ConjugateGradient",
    "Contexts",
    "DiscreteMMSE",
    "GDPlusPlus",
    "GradientDescent",
    "KalmanFilter",
    "LeastSquares",
    "LogisticLoss",
    "NewtonIteration",
    "RidgeRegression",
    "Steps",
    "chebyshev_steps",
    "damped_newton",
    "gradient_descent",
    "newton_iteration",
    "search_gd",
    "search_gd_plus_plus",
]
