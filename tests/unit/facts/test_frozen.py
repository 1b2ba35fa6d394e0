import copy
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from diagnostics.facts.frozen import frozen


@frozen
class Point:
    x: int
    y: float = 0.0
    names: list[str] = field(default_factory=list, compare=False, repr=False)


@frozen
class Named(Point):
    name: str = ""


def test_fields_cannot_be_changed():
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="'z'"):
        point.z = 2
    with pytest.raises(FrozenInstanceError, match="'x'"):
        del point.x
    assert point.x == 1


def test_equal_facts_are_equal_and_have_one_hash():
    assert Point(1, 2.0) == Point(1, 2.0) != Point(1, 3.0)
    assert Point(1, names=["a"]) == Point(1, names=["b"])
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert Point(1) != Named(1)


def test_is_shown_as_a_call():
    assert repr(Named(1, name="a")) == "Named(x=1, y=0.0, name='a')"


def test_is_an_ordinary_dataclass_otherwise():
    point = Named(1, 2.0, ["a"], "b")
    assert replace(point, x=5) == Named(5, 2.0, name="b")
    assert [each.name for each in fields(point)] == ["x", "y", "names", "name"]
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
