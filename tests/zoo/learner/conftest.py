"""The small zoos of the keeper's tests."""

from tests.zoo.keeper.conftest import zoo as zoo
