import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.memory import KeptMemory, OutOfMemoryCrash
from diagnostics.facts.training import GraphFacts
from diagnostics.rules.memory.growing_memory import GrowingMemory
from tests.support.courses import history, judge

RULE = GrowingMemory()
MIB = 2**20
CRASH = CrashFacts("OutOfMemoryError", "", (FrameFacts("train.py", 31, "<module>", yours=True),), live=True)


class TestFromCrash:
    def test_names_what_holds_the_memory_that_was_wanted(self):
        finding = RULE.from_crash(
            CRASH, KeptMemory("losses", "graphs", 120, 4 * MIB), OutOfMemoryCrash("PyTorch", "GPU 0", 64 * MIB)
        )
        assert finding.severity == "error"
        assert finding.evidence == {
            "variable": "losses",
            "graphs": 120,
            "each_bytes": 4 * MIB,
            "all_bytes": 480 * MIB,
        }
        assert str(finding.where) == "train.py:31"

    def test_only_warns_where_they_are_not_enough(self):
        finding = RULE.from_crash(
            CRASH, KeptMemory("losses", "graphs", 12, 512), OutOfMemoryCrash("PyTorch", "GPU 0", 64 * MIB)
        )
        assert finding.severity == "warning"


class TestFromModels:
    def test_names_the_histories_that_hold_the_models(self):
        finding = RULE.from_crash(
            CRASH, KeptMemory("runs", "histories", 3, 15 * MIB), OutOfMemoryCrash("TensorFlow", "GPU 0", 4 * MIB)
        )
        assert finding.severity == "error"
        assert finding.evidence == {
            "variable": "runs",
            "models": 3,
            "each_bytes": 15 * MIB,
            "all_bytes": 45 * MIB,
        }

    def test_only_warns_of_models_that_are_not_enough(self):
        finding = RULE.from_crash(
            CRASH, KeptMemory("folds", "models", 2, MIB), OutOfMemoryCrash("TensorFlow", "GPU 0", 4 * MIB)
        )
        assert finding.severity == "warning"


def graphs(alive):
    return GraphFacts(np.arange(len(alive)) * 20, np.array(alive, bool))


class TestFromGraphs:
    def test_counts_those_of_steps_long_past(self):
        run = history([1.0] * 400, memory_bytes=np.linspace(300, 310, 20) * MIB, memory_of="process")
        finding = judge(RULE.from_graphs, graphs([True] * 20), run)
        assert (finding.rule, finding.severity, finding.step) == ("growing-memory", "warning", 0)

    def test_is_silent_if_they_die(self):
        assert judge(RULE.from_graphs, graphs([False] * 20), history([1.0] * 400)) is None

    def test_is_silent_if_they_die_once_an_epoch(self):
        assert judge(RULE.from_graphs, graphs([False] * 10 + [True] * 10), history([1.0] * 400)) is None

    def test_is_not_applicable_to_a_short_run(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_graphs, graphs([True] * 8), history([1.0] * 160))


class TestFromHistory:
    def run(self, memory, of="accelerator"):
        return history([1.0] * (20 * len(memory)), memory_bytes=np.asarray(memory, float) * MIB, memory_of=of)

    def test_finds_what_grows_to_the_end(self):
        finding = judge(RULE.from_history, self.run(np.linspace(1000, 4980, 40)))
        assert finding.severity == "warning"

    def test_is_only_a_note_for_a_process(self):
        assert judge(RULE.from_history, self.run(np.linspace(1000, 4980, 40), "process")).severity == "note"

    @pytest.mark.parametrize(
        "memory",
        [
            np.full(40, 1000.0),
            [500.0] * 5 + [3000.0] * 35,  # an allocator warms up
            [1000.0] * 30 + [3000.0] * 10,  # a jump
            [*np.linspace(1000, 4000, 30), *[4000.0] * 10],  # data kept in the first epoch
            1000 + 300 * (np.arange(40) % 5),  # dropped once an epoch
            1000 + np.random.default_rng(0).random(40) * 200,
            np.linspace(1000, 1100, 40),
        ],
        ids=["constant", "warm-up", "jump", "first epoch", "sawtooth", "noise", "little"],
    )
    def test_is_silent_on_memory_that(self, memory):
        assert judge(RULE.from_history, self.run(memory)) is None

    def test_is_not_applicable_without_readings(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, history([1.0] * 400))
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, self.run([1000.0] * 20))
