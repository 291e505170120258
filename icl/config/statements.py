"""What statements say of themselves, read without importing them; checks that are a part of another one."""

from __future__ import annotations

import functools
import importlib.resources
import json

_JOINED = {
    "lu/ridgeless_icl": "lu/optimum lu/ridge",
    "ahn/lemma5": "ahn/last_b ahn/scaling_factor",
    "ahn/theorem1": "ahn/nonconvex",
    "looped/minimiser_symmetric": "looped/sandwich",
    "ahn/global_optimum": "looped/separate_layers",
    "xie/theorem1": "xie/configurations",
    "xie/theorem4": "xie/gd_forward",
    "xie/lemma1": "xie/lemma2",
    "lds/lemma4_1": "lds/lemmaD_3",
    "lds/pcg": "lds/neumann",
    "lds/theorem4_1": "lds/one_dimension",
    "lds/stationarity": "lds/toeplitz",
    "giannou/order": "giannou/newton_start giannou/inversion_steps",
    "giannou/theorem4_2": "giannou/ridge",
    "giannou/proposition3_3": "giannou/corollaryE_2",
    "giannou/lemmaB_8": "giannou/equationB_9",
    "giannou/theorem5_2": "giannou/equationC_6",
    "giannou/lemmaB_9": "giannou/lemmaB_10",
    "giannou/theorem5_4": "giannou/lemmaB_4 giannou/theorem5_4_rate",
}
JOINED = {old: new for new, olds in _JOINED.items() for old in olds.split()}  # asking for one names the other


@functools.cache
def index() -> dict[str, dict[str, str]]:
    """Return title, reference, claim and the like of every statement, by id: icl.checks.index writes it."""
    text = (importlib.resources.files("icl") / "checks" / "index.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
