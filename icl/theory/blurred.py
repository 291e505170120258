"""The exception of a computation in balls that have become too wide."""


class Blurred(Exception):
    """A ball has lost its digits: more bits are needed before it is worth going on."""
