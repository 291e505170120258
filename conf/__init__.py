"""The configs of icl, for `hydra.initialize_config_module("icl.conf")`."""
