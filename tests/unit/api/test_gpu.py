"""Cards and the rules about them; the driver's answers are recorded ones."""

from types import SimpleNamespace

from diagnostics.api.gpu import look_at_cards

GIB = 2**30
GONE = 2**22 + 1  # no process can have this number: it is past the largest


class Recorded:
    """Answers as `pynvml` does: two cards alike, nearly filled by two processes each."""

    class NVMLError(Exception):
        pass

    def __getattr__(self, name):
        memory = SimpleNamespace(total=24 * GIB, free=GIB)
        processes = [SimpleNamespace(pid=GONE + number, usedGpuMemory=11 * GIB) for number in range(2)]
        answers = {
            "nvmlDeviceGetCount": 2,
            "nvmlSystemGetDriverVersion": "550.54.15",
            "nvmlDeviceGetName": "NVIDIA A10",
            "nvmlDeviceGetMemoryInfo": memory,
            "nvmlDeviceGetComputeRunningProcesses": processes,
        }
        return lambda *arguments: answers.get(name, [])


class TestLookAtCards:
    def test_reports_a_rule_for_every_card_that_breaks_it(self):
        cards, report = look_at_cards(Recorded())
        assert [card.index for card in cards] == [0, 1]
        assert [(f.rule, f.evidence["gpu"]) for f in report.findings] == [("crowded-gpu", 0), ("crowded-gpu", 1)]
        assert report.title == "checked 2 GPUs"

    def test_says_what_could_not_be_judged_of_those_rules_alone(self):
        _, report = look_at_cards(Recorded())
        assert report.not_applicable == {
            "tensorflow-holds-gpu": "it is not known which libraries the processes on the GPU have loaded"
        }
