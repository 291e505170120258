"""Random streams of tests, one for each seed."""

from icl.random import generator


def streams(seeds=(0, 1), role="check", step=0):
    return [generator(seed, role, step) for seed in seeds]
