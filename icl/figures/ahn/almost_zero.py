"""'Almost 0' (ahn, section 4.3) and 'converging to 0' (5.1): one threshold for both figures."""

ALMOST_ZERO = 0.01  # of the risk at zero weights
