"""Compiles icl's kernel where pip installs or a wheel is built, if a C++ compiler is there; without, icl is
pure Python and everything runs."""

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path(__file__).parent / "icl" / "kernel"


class KernelHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # By its path: icl itself, and what it needs, are not installed yet.
        spec = importlib.util.spec_from_file_location("icl_kernel_build", FOLDER / "build.py")
        assert spec is not None and spec.loader is not None
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        try:
            library = build.built()
        except build.NotBuilt as error:
            self.app.display_warning(f"icl is installed without its compiled kernel: {error}")
            return
        if version != "editable":  # which finds it beside its source
            build_data["force_include"][str(library)] = f"icl/kernel/{library.name}"
            # It has a C interface, which no version of Python changes.
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data |= {"pure_python": False, "tag": f"py3-none-{platform}"}
