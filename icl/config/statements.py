"""What statements say of themselves, read without importing them; checks that are a part of another one."""

from __future__ import annotations

import functools
import importlib.resources
import json

JOINED = {  # asking for one names the other
    "lu/optimum": "lu/ridgeless_icl",
    "lu/ridge": "lu/ridgeless_icl",
    "ahn/last_b": "ahn/lemma5",
    "ahn/nonconvex": "ahn/theorem1",
    "ahn/scaling_factor": "ahn/lemma5",
    "looped/sandwich": "looped/minimiser_symmetric",
    "looped/separate_layers": "ahn/global_optimum",
    "xie/configurations": "xie/theorem1",
    "xie/gd_forward": "xie/theorem4",
    "xie/lemma2": "xie/lemma1",
    "lds/lemmaD_3": "lds/lemma4_1",
    "lds/neumann": "lds/pcg",
    "lds/one_dimension": "lds/theorem4_1",
    "lds/toeplitz": "lds/stationarity",
    "giannou/newton_start": "giannou/order",
    "giannou/inversion_steps": "giannou/order",
    "giannou/ridge": "giannou/theorem4_2",
    "giannou/corollaryE_2": "giannou/proposition3_3",
    "giannou/equationB_9": "giannou/lemmaB_8",
    "giannou/equationC_6": "giannou/theorem5_2",
    "giannou/lemmaB_10": "giannou/lemmaB_9",
    "giannou/lemmaB_4": "giannou/theorem5_4",
    "giannou/theorem5_4_rate": "giannou/theorem5_4",
}


@functools.cache
def index() -> dict[str, dict[str, str]]:
    """Return title, reference, claim and the like of every statement, by id: icl.checks.index writes it."""
    text = (importlib.resources.files("icl") / "checks" / "index.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
