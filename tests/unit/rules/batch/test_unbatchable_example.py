import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import UnbatchableExample as Symptom
from diagnostics.rules.batch.unbatchable_example import UnbatchableExample

CRASH = CrashFacts("TypeError", "", (), live=False)


class TestFromCrash:
    def test_columns_of_different_lengths(self):
        finding = UnbatchableExample().from_crash(CRASH, Symptom("rows", "tokens", (8964, 1000)))
        assert finding.evidence == {"kind": "rows", "what": "tokens", "rows": [8964, 1000]}

    @pytest.mark.parametrize("what", ["NoneType", "PIL.Image.Image", "torch_geometric.data.Data"])
    def test_values_without_a_batch(self, what):
        assert UnbatchableExample().from_crash(CRASH, Symptom("type", what)).severity == "error"
