"""A measurement is a file: nothing else names it."""

import dataclasses

import pytest

from diagnostics.collectors import probe
from diagnostics.collectors.pytorch.watch import metrics
from tests.pytorch.watched import mlp, run

COUNTER = """
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe
from tests.pytorch.watch.test_training_probe import Batches

class BatchCounter(TrainingProbe):
    rows = 0

    def on_pass_begin(self, step, args, kwargs):
        self.rows += len(args[0])

    def facts(self):
        yield Batches(self.rows, self.subject.steps)
"""


@dataclasses.dataclass(frozen=True)
class Batches:
    rows: int
    steps: int


@pytest.fixture
def dropped(tmp_path, monkeypatch):
    (tmp_path / "batch_counter.py").write_text(COUNTER)
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(tmp_path)])
    probe._all_in.cache_clear()
    yield
    probe._all_in.cache_clear()


def test_a_probe_in_the_folder_measures_every_watched_training(dropped):
    watch = run(mlp(), 12, every=4)
    (batches,) = [fact for fact in watch.course() if isinstance(fact, Batches)]
    assert batches == Batches(rows=5 * 16, steps=12)  # of steps 0, 1, 2, 4 and 8
    assert watch.faults == {}
