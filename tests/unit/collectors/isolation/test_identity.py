import gc

import pytest

from diagnostics.collectors.isolation.identity import IdentityMap


class Hostile:
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    def __bool__(self):
        raise RuntimeError("neither true nor false")

    def __len__(self):
        raise RuntimeError("no length")


class Slotted:
    __slots__ = ("value",)


class TestIdentityMap:
    def test_tells_keys_apart_without_asking_them(self):
        one, other, values = Hostile(), Hostile(), IdentityMap()
        values[one], values[other] = 1, 2
        values[one] = 3
        assert (values[one], values[other], len(values)) == (3, 2, 2)
        assert (one in values, Hostile() in values) == (True, False)
        assert (values.pop(one), values.get(one)) == (3, None)
        with pytest.raises(KeyError):
            values[one]

    def test_drops_an_entry_with_its_key(self):
        values = IdentityMap()
        key = Hostile()
        values[key] = "there"
        del key
        gc.collect()
        assert len(values) == 0

    def test_takes_keys_without_weak_references(self):
        values, key = IdentityMap(), Slotted()
        values[key] = 1
        assert values[key] == 1
        del values[key]
        assert key not in values

    def test_may_change_while_it_is_read(self):
        keys, values = [Hostile() for _ in range(5)], IdentityMap()
        values.update((key, 0) for key in keys)
        for key in values:
            del values[key]
        assert len(values) == 0
