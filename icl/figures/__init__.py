"""Figures: stored arrays -> a drawing, and the claims it makes, measured. Never a model, never a GPU."""
