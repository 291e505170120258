"""The Lightning module, the prompt stream and its callbacks."""
