import pytest

from diagnostics.facts.data import FrozenDraws, HeldGenerator, WorkerFacts
from diagnostics.facts.where import Where
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.data.repeated_worker_randomness import RepeatedWorkerRandomness
from tests.support.sources import written

RULE = RepeatedWorkerRandomness()
HELD = HeldGenerator("numpy.random.Generator", "Photos", "rng", "Photos.__getitem__")


def test_fires_on_a_generator_that_the_dataset_draws_from():
    finding = RULE.from_workers(WorkerFacts(4, False, (HELD,)))
    assert (finding.rule, finding.severity, finding.stage) == ("repeated-worker-randomness", "warning", "data")
    assert finding.evidence == {"workers": 4, "persistent": False, "generators": ["Photos.rng"]}


def test_leaves_out_the_epochs_of_persistent_workers():
    assert "Each epoch" not in RULE.from_workers(WorkerFacts(4, True, (HELD,))).message


def test_is_a_note_with_a_single_worker():
    finding = RULE.from_workers(WorkerFacts(1, False, (HELD,)))
    assert finding.severity == "note"


def test_names_a_variable_by_its_name():
    held = HeldGenerator("random.Random", "", "rng", "jitter")
    assert RULE.from_workers(WorkerFacts(2, True, (held,))).severity == "warning"


@pytest.mark.parametrize("workers", [WorkerFacts(4, False), WorkerFacts(1, True, (HELD,))])
def test_silent_where_nothing_repeats(workers):
    assert RULE.from_workers(workers) is None


def test_fires_on_workers_that_are_seeded_alike():
    finding = RULE.from_workers(WorkerFacts(4, False, same_seed="numpy.random"))
    assert finding.severity == "warning"
    assert RULE.from_workers(WorkerFacts(1, False, same_seed="random")).severity == "note"


def test_fires_on_a_seed_for_every_row():
    seed = written("constant_seeds", "torch", "42", "torch.randn", line=20, function="Denoising.__getitem__")
    finding = RULE.from_source(seed)
    assert (finding.severity, finding.where.line) == ("warning", 20)
    assert RULE.from_source(WrittenPatterns()) is None


def test_names_numbers_that_a_traced_step_repeats():
    finding = RULE.from_traces(FrozenDraws(Where("train.py", 9, "train_step"), "numpy.random", "call", 8))
    assert (finding.severity, finding.where.line) == ("warning", 9)
    assert finding.evidence == {"function": "train_step", "generator": "numpy.random", "for": "call", "runs": 8}


@pytest.mark.parametrize("elements", [640, None])
def test_names_numbers_that_all_elements_of_a_dataset_get(elements):
    finding = RULE.from_traces(FrozenDraws(Where("train.py", 4, "flipped"), "random", "element", elements))
    assert finding.evidence["runs"] == elements
