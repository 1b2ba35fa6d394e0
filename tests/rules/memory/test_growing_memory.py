from diagnostics.crash_facts import CrashFacts, FrameFacts, KeptGraphs, OutOfMemory
from diagnostics.rules.memory.growing_memory import GrowingMemory

RULE = GrowingMemory()
MIB = 2**20
CRASH = CrashFacts("OutOfMemoryError", "", (FrameFacts("train.py", 31, "<module>", yours=True),), live=True)


class TestFromCrash:
    def test_names_what_holds_the_memory_that_was_wanted(self):
        finding = RULE.from_crash(
            CRASH, KeptGraphs("losses", 120, 4 * MIB), OutOfMemory("PyTorch", "GPU 0", 64 * MIB)
        )
        assert finding.severity == "error"
        assert finding.message == (
            "losses holds 120 tensors, each with the graph of a batch of its own, and every graph keeps the "
            "activations of its batch: 4.0 MiB each, about 480.0 MiB in all, and more with every step. Without "
            "them the request would have been met."
        )
        assert finding.fix == (
            "keep numbers, not tensors with their graphs: loss.item(), or output.detach(); and evaluate under "
            "torch.no_grad()"
        )
        assert finding.evidence == {
            "variable": "losses",
            "graphs": 120,
            "each_bytes": 4 * MIB,
            "all_bytes": 480 * MIB,
        }
        assert str(finding.where) == "train.py:31"

    def test_only_warns_where_they_are_not_enough(self):
        finding = RULE.from_crash(CRASH, KeptGraphs("losses", 12, 512), OutOfMemory("PyTorch", "GPU 0", 64 * MIB))
        assert finding.severity == "warning"
        assert finding.message.endswith("512 B each, about 6.0 KiB in all, and more with every step.")
