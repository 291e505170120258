"""Figure 6 of Xie et al.: language models with and without an initial guess."""
