"""Configs of installed packages and, in Python, of a user's folder stand beside those of icl."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

from icl.config.search_path import folders_beside


class Folders(SearchPathPlugin):
    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in folders_beside():
            search_path.append("icl", f"file://{folder}")
