import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import ModelFacts, OutputFacts
from diagnostics.rules.model.loss.unused_classes import UnusedClasses

THOUSAND = OutputFacts((8, 1000), 1000)
TEN_KINDS = np.arange(200) % 10


class TestFires:
    def test_named_classes_make_it_a_warning(self):
        dataset = DatasetFacts(60_000, 200, labels=np.arange(200) % 3, label_names=("cat", "cow", "dog"))
        model = ModelFacts("ResNet", "torch", 1, 1, outputs_setting="nn.Linear(512, {})")
        finding = UnusedClasses().from_dataset(dataset, THOUSAND, model)
        assert (finding.rule, finding.severity, finding.stage) == ("unused-classes", "warning", "model")
        assert finding.evidence == {
            "num_outputs": 1000,
            "classes": 3,
            "lowest_label": 0,
            "highest_label": 2,
            "rows_read": 200,
            "rows": 60_000,
        }

    def test_a_dataset_read_as_a_whole_makes_it_a_warning(self):
        finding = UnusedClasses().from_dataset(DatasetFacts(200, 200, labels=TEN_KINDS), THOUSAND)
        assert finding.severity == "warning"

    @pytest.mark.parametrize("size", [60_000, None])
    def test_a_sample_of_the_rows_makes_it_a_note(self, size):
        finding = UnusedClasses().from_dataset(DatasetFacts(size, 200, labels=TEN_KINDS), THOUSAND)
        assert finding.severity == "note"


class TestStaysSilent:
    def test_with_an_output_for_each_class(self):
        assert (
            UnusedClasses().from_dataset(DatasetFacts(200, 200, labels=TEN_KINDS), OutputFacts((8, 10), 10))
            is None
        )

    def test_where_the_names_explain_outputs_that_the_sample_lacks(self):
        dataset = DatasetFacts(10**6, 200, labels=TEN_KINDS, label_names=tuple(f"n{i}" for i in range(1000)))
        assert UnusedClasses().from_dataset(dataset, THOUSAND) is None

    @pytest.mark.parametrize(("outputs", "fires"), [(20, False), (21, True)])
    def test_up_to_twice_as_many_outputs(self, outputs, fires):
        dataset = DatasetFacts(200, 200, labels=TEN_KINDS)
        finding = UnusedClasses().from_dataset(dataset, OutputFacts((8, outputs), outputs))
        assert (finding is not None) == fires

    @pytest.mark.parametrize(("outputs", "fires"), [(11, False), (12, True)])
    def test_up_to_nine_spare_outputs(self, outputs, fires):
        dataset = DatasetFacts(200, 200, labels=np.arange(200) % 2)
        finding = UnusedClasses().from_dataset(dataset, OutputFacts((8, outputs), outputs))
        assert (finding is not None) == fires


class TestNotApplicable:
    @pytest.mark.parametrize("labels", [None, np.array([-100, -100])])
    def test_without_class_labels(self, labels):
        with pytest.raises(NotApplicable):
            UnusedClasses().from_dataset(DatasetFacts(2, 2, labels=labels), THOUSAND)

    def test_where_the_outputs_are_no_classes(self):
        with pytest.raises(NotApplicable):
            UnusedClasses().from_dataset(DatasetFacts(200, 200, labels=TEN_KINDS), OutputFacts((8, 100), None))
