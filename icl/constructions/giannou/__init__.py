"""Transformers written down from giannou's proofs: Newton's iteration and Newton's method, layer by layer."""
