"""Functions of a framework that are replaced, and restored exactly."""

import inspect
import traceback

import pytest

from diagnostics.collectors.isolation.patching import FROZEN, Patches


class Base:
    def step(self, size, *, scale=1):
        """Take a step."""
        if size < 0:
            raise ValueError("no such size")
        return size * scale


class Derived(Base):
    pass


@pytest.fixture
def patches():
    made = Patches()
    yield made
    made.undo()


class TestHooks:
    def test_before_gets_the_arguments(self, patches):
        seen = []
        patches.before(Base, "step", lambda *given, **options: seen.append((given[1:], options)))
        assert Base().step(3, scale=2) == 6
        assert seen == [((3,), {"scale": 2})]

    def test_around_may_change_the_result(self, patches):
        patches.around(Base, "step", lambda original: lambda self, size: original(self, size) + 1)
        assert Base().step(3) == 4

    def test_replacement_has_the_signature_of_the_original(self, patches):
        signature = inspect.signature(Base.step)
        patches.before(Base, "step", lambda *_, **__: None)
        assert (inspect.signature(Base.step), Base.step.__doc__) == (signature, "Take a step.")

    def test_frames_of_the_replacement_are_marked(self, patches):
        patches.before(Base, "step", lambda *_, **__: None)
        with pytest.raises(ValueError, match="no such size") as raised:
            Base().step(-1)
        files = [frame.filename for frame in traceback.extract_tb(raised.tb)]
        assert files == [__file__, FROZEN, __file__]


class TestUndo:
    @pytest.mark.parametrize("owner", [Base, Derived, Derived()])
    def test_restores_what_the_owner_itself_had(self, patches, owner):
        before = dict(vars(owner))
        for _ in range(2):
            patches.before(owner, "step", lambda *_, **__: None)
        assert dict(vars(owner)) != before
        patches.undo()
        assert dict(vars(owner)) == before

    def test_leaves_what_somebody_else_has_put_over_it(self, patches, monkeypatch):
        patches.before(Derived, "step", lambda *_, **__: None)
        monkeypatch.setattr(Derived, "step", later := lambda self, size: size)
        patches.undo()
        assert vars(Derived)["step"] is later
        monkeypatch.undo()
        del Derived.step
