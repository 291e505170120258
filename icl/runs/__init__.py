"""The run store: what is done is found by its fingerprint, what is interrupted continues.

Knows nothing of training, tasks or configuration: plain dicts, numpy arrays and paths. Nothing heavy is
imported here, so that `icl list` stays fast. The package can be called: it is the function `icl.runs`, whose
place in `icl` it takes once one of its modules is imported.
"""

import sys
from types import ModuleType
from typing import Any

_list_runs = vars(sys.modules["icl"]).get("runs")  # no import: it would be part of the code of every run


class _CalledPackage(ModuleType):
    def __call__(self, *args: Any, **settings: Any) -> Any:
        return self._list_runs(*args, **settings)


sys.modules[__name__].__class__ = _CalledPackage
