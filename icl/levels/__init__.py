"""Exact levels of the risk, and how near weights are to them."""
