"""Probes: found by their place, told of events, switched off when they fail."""

import importlib

import pytest

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.probe import Probe, Probes, probes_in


class StepProbe(Probe[list]):
    def on_step(self, step: int) -> None:
        """Before a step."""

    def on_end(self) -> None:
        """At the end."""


COUNTER = """
from tests.unit.collectors.test_probe import StepProbe

class Counter(StepProbe):
    cost = {cost}
    count = 0

    def on_step(self, step):
        self.count += step

    def facts(self):
        yield self.subject[0], self.count
        yield None
"""
BROKEN = """
from tests.unit.collectors.test_probe import StepProbe

class Broken(StepProbe):
    def on_step(self, step):
        self.subject.append(step)
        raise ValueError("on purpose")

    def facts(self):
        yield "reached"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a function that makes a package of these files."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name, **files):
        (tmp_path / name / "inner").mkdir(parents=True)
        for place in (tmp_path / name, tmp_path / name / "inner"):
            (place / "__init__.py").touch()
        for file, source in files.items():
            (tmp_path / name / f"{file.replace('__', '/')}.py").write_text(source)
        return importlib.import_module(name)

    return make


def test_a_file_in_the_folder_is_found_without_being_named(folder):
    probes = Probes(folder("dropped", any_name=COUNTER.format(cost=0)), StepProbe, ["loss"], FaultGuard().run)
    probes.tell(StepProbe.on_step, 2)
    probes.tell(StepProbe.on_step, 3)
    probes.tell(StepProbe.on_end)
    assert probes.facts("end") == [("loss", 5)]
    assert probes.facts("sampled") == []


def test_the_cheapest_comes_first(folder):
    package = folder(
        "ordered", a=COUNTER.format(cost=2), b=COUNTER.format(cost=1), inner__c=COUNTER.format(cost=1)
    )
    places = [kind.__module__.partition(".")[2] for kind in probes_in(package, StepProbe)]
    assert places == ["b", "inner.c", "a"]


def test_a_probe_that_fails_is_switched_off_alone(folder):
    guard, seen = FaultGuard(), ["loss"]
    probes = Probes(folder("faulty", bad_one=BROKEN, good=COUNTER.format(cost=0)), StepProbe, seen, guard.run)
    for step in (1, 2):
        probes.tell(StepProbe.on_step, step)
    assert probes.facts("end") == [("loss", 3)]
    assert seen == ["loss", 1]
    assert guard.faults == {"bad one": "watching the bad one ended: ValueError: on purpose"}


def test_waiting_for_an_event_that_never_happens_is_an_error():
    with pytest.raises(TypeError, match="waits for on_stepp"):

        class Misspelt(StepProbe):
            def on_stepp(self, step: int) -> None: ...
