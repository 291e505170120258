"""Composition of configs, from YAML to plain settings."""
