import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import UnbatchableExample as Symptom
from diagnostics.rules.batch.unbatchable_example import UnbatchableExample

CRASH = CrashFacts("TypeError", "", (), live=False)


class TestFromCrash:
    def test_columns_of_different_lengths(self):
        finding = UnbatchableExample().from_crash(CRASH, Symptom("rows", "tokens", (8964, 1000)))
        assert finding.message == (
            "The columns have different lengths: tokens has 1,000 rows where the others have 8,964. A batched "
            "function "
            "of Dataset.map returned another number of rows than the columns that stay."
        )
        assert finding.fix == "dataset.map(function, batched=True, remove_columns=dataset.column_names)"
        assert finding.evidence == {"kind": "rows", "what": "tokens", "rows": [8964, 1000]}

    @pytest.mark.parametrize(
        ("what", "fix"),
        [
            (
                "NoneType",
                "return a value on every path of __getitem__; take unusable rows out when the dataset is made",
            ),
            ("PIL.Image.Image", "transforms.ToTensor(), as the last of the transforms"),
            ("torch_geometric.data.Data", "turn it into a tensor in __getitem__"),
        ],
    )
    def test_values_without_a_batch(self, what, fix):
        finding = UnbatchableExample().from_crash(CRASH, Symptom("type", what))
        assert finding.fix == fix
