"""Weights written down from the papers' proofs."""
