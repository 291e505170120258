"""Exceptions of a computation that cannot go on."""


class Blurred(Exception):
    """A ball has lost its digits: more bits are needed before it is worth going on."""


class Undecided(Exception):
    """Nothing is left to measure, for this reason."""
