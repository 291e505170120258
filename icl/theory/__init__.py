"""Exact expectations and optima over random prompts. Imports nothing else of icl.

gaussian, wishart, words      moments of Gaussian vectors, of Wishart traces, of words in a sample covariance
quadrature                    Gauss rule of a measure known by exact moments
quadratic                     one layer: the risk as a quadratic form, its minimum, its best with H heads
value_search                  one layer: the best risk with H heads by a search over their values
dynamical_system              moments of random linear dynamical systems, the risk on AR(s) tokens
polynomial                    many layers on the sets S of ahn's Theorems 3 and 4
logistic                      giannou's regularised logistic loss, its minimum by damped Newton or descent
closed_forms                  ahn's Theorems 1 and 5 and eq. (7)
distance                      Dist(M, I) of ahn's figures, symmetric roots
statistics                    the norm of an expected gradient, and its standard error
"""
