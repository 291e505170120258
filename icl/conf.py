"""The folder `conf` of a checkout as the package icl.conf, as it is in an installed wheel."""

import importlib.util
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "conf"
_SPEC = importlib.util.spec_from_file_location(
    __name__, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
)
assert _SPEC is not None and _SPEC.loader is not None
sys.modules[__name__] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(sys.modules[__name__])
