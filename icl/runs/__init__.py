"""The run store: what is done is found by its fingerprint, what is interrupted continues.

Knows nothing of training, tasks or configuration: plain dicts, numpy arrays and paths. Nothing heavy is
imported here, so that `icl list` stays fast.
"""
