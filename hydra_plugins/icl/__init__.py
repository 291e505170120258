"""Hydra finds plugins only under this name; the work is done in icl.config.multirun.

Hydra imports it wherever it is used, and what `${at:...}` in a config means is then known.
"""

import icl  # noqa: F401
