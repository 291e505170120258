"""Configs of installed packages stand beside those of icl."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

from icl.config.search_path import confs_of_packages


class Folders(SearchPathPlugin):
    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in confs_of_packages():
            search_path.append("icl", f"file://{folder}")
