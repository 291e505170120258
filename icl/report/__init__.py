"""Records and verdicts -> one static page."""
