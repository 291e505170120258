"""What a transformer is said to run. `predict(prompt)`, a model's own signature, answers (R, B) predictions.

descent         gradient descent, preconditioned by Sigma^{-1} or not, Chebyshev's step sizes, GD++
step_search     best step sizes on a draw of contexts
least_squares   least squares of minimum norm, ridge
"""

from icl.algorithms.descent import GDPlusPlus, GradientDescent, chebyshev_steps
from icl.algorithms.least_squares import LeastSquares, Ridge
from icl.algorithms.step_search import Contexts, Steps, search_gd, search_gd_plus_plus

__all__ = [
    "Contexts",
    "GDPlusPlus",
    "GradientDescent",
    "LeastSquares",
    "Ridge",
    "Steps",
    "chebyshev_steps",
    "search_gd",
    "search_gd_plus_plus",
]
