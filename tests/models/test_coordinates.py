"""Tests of other coordinates: the same weights, there and back."""

import pytest
import torch

from icl.errors import InputError
from icl.models import Full, LinearTransformer, SparseAB
from icl.models.coordinates import Coordinates
from icl.tasks import LinearRegression
from icl.training.trainer import LoopConfig

LAW = LinearRegression(3, 6, eigenvalues=[4, 1, 0.25], task_covariance="inverse").law([0, 1])
WHITENED = LoopConfig(steps=1, batch=1, coordinates="whitened")


def test_parameters_and_back():
    family = SparseAB(3, 3, 0.5)
    family.initialise([0, 1])
    coordinates = Coordinates(WHITENED.maps(LinearTransformer(family), LAW), torch.float64)
    given = family.matrices()
    parameters = coordinates.parameters_of(given)
    white_RLDD = LAW.root_RDD.mT[:, None] @ given["A"] @ LAW.root_RDD[:, None]
    torch.testing.assert_close(parameters["A"].data, white_RLDD.detach(), rtol=1e-12, atol=1e-12)
    names = list(given)
    for r, one in ((None, slice(None)), (1, slice(1, 2))):
        mapped = [parameters[name][one] for name in names]
        for name, M in zip(names, coordinates.matrices_of(names, mapped, r), strict=True):
            torch.testing.assert_close(M.detach(), given[name].detach()[one], rtol=1e-12, atol=1e-12)


def test_without_maps_the_matrices_themselves_are_trained():
    family = SparseAB(3, 3, 0.5)
    family.initialise([0, 1])
    coordinates = Coordinates({}, torch.float64)
    assert all(coordinates.parameters_of(family.matrices())[k] is v for k, v in family.matrices().items())


def test_models_without_such_coordinates_are_refused():
    with pytest.raises(InputError, match=r"train\.coordinates=whitened: not with .*Full; use plain"):
        WHITENED.maps(LinearTransformer(Full(3, 2)), LAW)
    with pytest.raises(InputError, match=r"train\.coordinates=white: must be one of"):
        LoopConfig(steps=1, batch=1, coordinates="white")
