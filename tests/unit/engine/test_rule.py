"""What a rule may declare, what is refused when its class is made, and when its checks are called."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Optional, Union

import pytest

from diagnostics.engine.causality import Causality
from diagnostics.engine.evaluate import Evaluator
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.errors import InvalidInput
from diagnostics.facts.pipeline import ModelFacts


@dataclass(frozen=True)
class Batch:
    size: int


@dataclass(frozen=True)
class Loader:
    drops_last: bool


def model(library):
    values = {field.name: None for field in dataclasses.fields(ModelFacts)}
    return ModelFacts(**{**values, "name": "Net", "library": library})


class OddBatch(Rule):
    """The batch has an odd number of rows."""

    stage = "batch"
    severity = "warning"
    causes = ("slow-step",)
    FIXES = {"torch": ("DataLoader(..., drop_last=True)", "pad the batch"), "keras": "dataset.batch(8, True)"}

    @check
    def from_batch(self, batch: Batch, loader: Loader | None = None) -> Finding | None:
        if batch.size < 0:
            raise NotApplicable("needs a batch with rows")
        if batch.size % 2 == 0 or (loader is not None and loader.drops_last):
            return None
        return self.found(f"The batch has {batch.size} rows.")


class SlowStep(Rule):
    """The step is slow."""

    name = "slow-step"
    stage = "batch"
    severity = "error"

    @check
    def from_batch(self, batch: Batch) -> Finding | None:
        return self.found("It is slow.", fix="make it faster")


class TestDeclaration:
    def test_the_name_is_that_of_the_class(self):
        assert OddBatch.name == "odd-batch"

    @pytest.mark.parametrize(
        ("name", "expected"), [("NaNLoss", "na-n-loss"), ("GPUFull", "gpu-full"), ("Batch2Large", "batch2-large")]
    )
    def test_a_class_name_is_read_as_words(self, name, expected):
        assert type(name, (Rule,), {"__module__": "train"}).name == expected

    @pytest.mark.parametrize("annotation", [Optional[Loader], Union[Loader, None], Loader | None])  # noqa: UP007, UP045
    def test_every_spelling_of_an_optional_fact_is_understood(self, annotation):
        def from_batch(self, batch, loader=None):
            return None

        from_batch.__annotations__ = {"batch": Batch, "loader": annotation}
        made = type("Made", (Rule,), {**REQUIRED, "from_batch": check(from_batch)})
        (needs,) = made().checks().values()
        assert [(need.kind, need.required) for need in needs.values()] == [(Batch, True), (Loader, False)]

    @pytest.mark.parametrize(
        ("annotations", "message"),
        [
            ({"batch": Batch | Loader}, "annotated with tests"),
            ({"batch": "Batch | None"}, "a check whose facts are all optional"),
            ({"batch": "Unknown"}, "an annotation cannot be read (name 'Unknown' is not defined)"),
            ({}, "annotated with None"),
        ],
    )
    def test_a_check_that_could_never_run_is_refused(self, annotations, message):
        def from_batch(self, batch=None):
            return None

        from_batch.__annotations__ = annotations
        with pytest.raises(InvalidInput) as refused:
            type("Made", (Rule,), {**REQUIRED, "from_batch": check(from_batch)})
        assert message.replace("tests", "") in str(refused.value).replace("tests", "")

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"stage": "kitchen"}, "The rule Made declares 'kitchen' as its stage. Choose: data, batch, "),
            (
                {"severity": "fatal"},
                "The rule Made declares 'fatal' as its severity. Choose: error, ",
            ),
            ({"name": "Odd Batch"}, "The rule Made is named 'Odd Batch'. It takes words joined by hyphens."),
            ({"__doc__": None}, "The rule Made has no docstring. Its first sentence must name the pattern."),
        ],
    )
    def test_a_rule_that_declares_nonsense_is_refused(self, changed, message):
        with pytest.raises(InvalidInput) as refused:
            type("Made", (Rule,), {**REQUIRED, "from_batch": OddBatch.from_batch, **changed})
        assert str(refused.value).startswith(message)

    def test_a_check_without_its_mark_is_refused(self):
        with pytest.raises(InvalidInput, match=r"Made\.from_batch looks like a check but is not marked"):
            type("Made", (Rule,), {**REQUIRED, "from_batch": lambda self, batch: None})

    def test_a_check_that_takes_nothing_is_refused(self):
        with pytest.raises(InvalidInput, match=r"<lambda> takes no facts"):
            type("Made", (Rule,), {**REQUIRED, "from_batch": check(lambda self: None)})

    def test_a_base_without_checks_needs_nothing(self):
        class Base(Rule):
            pass

        assert Base().checks() == {}


REQUIRED = {"__doc__": "Made for a test.", "__module__": "train", "stage": "batch", "severity": "note"}


class FewRows(Rule):
    """The batch has few rows."""

    stage = "batch"
    severity = "note"

    @check
    def from_batch(self, batch: Batch) -> Finding | None:
        raise NotApplicable

    @check
    def from_loader(self, loader: Loader) -> Finding | None:
        raise NotApplicable("needs a loader that shuffles")


class TestEvaluator:
    def test_a_check_without_a_reason_leaves_it_to_the_others(self):
        evaluator = Evaluator([FewRows()])
        evaluator.add(Batch(3))
        assert evaluator.not_applicable(Batch) == {}
        assert evaluator.not_applicable(Batch, Loader) == {"few-rows": "needs loader"}
        evaluator.add(Loader(drops_last=True))
        assert evaluator.not_applicable(Batch, Loader) == {"few-rows": "needs a loader that shuffles"}
        other_order = Evaluator([FewRows()])
        other_order.add(Loader(drops_last=True))
        other_order.add(Batch(3))
        assert other_order.not_applicable(Batch, Loader) == {"few-rows": "needs a loader that shuffles"}

    def test_an_optional_fact_is_waited_for(self):
        evaluator = Evaluator([OddBatch()])
        assert evaluator.add(Batch(3)) == []
        assert evaluator.add(Loader(drops_last=True)) == []
        assert evaluator.judged == {"odd-batch"}

    def test_a_check_does_without_it_when_the_phase_closes(self):
        evaluator = Evaluator([OddBatch()])
        evaluator.add(Batch(3))
        assert [finding.message for finding in evaluator.close_phase()] == ["The batch has 3 rows."]
        assert evaluator.add(Loader(drops_last=True)) == evaluator.close_phase() == []

    def test_a_required_fact_is_missed_by_name(self):
        evaluator = Evaluator([OddBatch()])
        evaluator.add(Loader(drops_last=True))
        evaluator.close_phase()
        assert evaluator.not_applicable(Batch, Loader) == {"odd-batch": "needs batch"}
        assert evaluator.not_applicable(Loader) == {}

    def test_a_check_that_has_no_evidence_says_why(self):
        evaluator = Evaluator([OddBatch()])
        evaluator.add(Batch(-1), Loader(drops_last=False))
        assert evaluator.not_applicable(Batch) == {"odd-batch": "needs a batch with rows"}

    def test_a_check_without_a_reason_leaves_that_of_another(self):
        class OddBatchOrSilent(OddBatch):
            @check
            def from_loader(self, loader: Loader) -> Finding | None:
                raise NotApplicable

        evaluator = Evaluator([OddBatchOrSilent()])
        evaluator.add(Batch(-1), Loader(drops_last=False))
        assert list(evaluator.not_applicable(Batch, Loader).values()) == ["needs a batch with rows"]

    @pytest.mark.parametrize(
        ("library", "fix", "alternatives"),
        [
            ("torch", "DataLoader(..., drop_last=True)", ("pad the batch",)),
            ("transformers", "DataLoader(..., drop_last=True)", ("pad the batch",)),
            ("keras", "dataset.batch(8, True)", ()),
        ],
    )
    def test_the_fix_is_that_of_the_library(self, library, fix, alternatives):
        (finding,) = Evaluator([OddBatch()]).add(model(library), Batch(3), Loader(drops_last=False))
        assert (finding.fix, finding.alternatives) == (fix, alternatives)
        assert finding.as_dict()["alternatives"] == list(alternatives)

    @pytest.mark.parametrize(
        ("adapters", "arguments", "fix"),
        [
            (False, None, "lr=0.1"),
            (False, "TrainingArguments", "TrainingArguments(learning_rate=0.1)"),
            (False, "SFTConfig", "SFTConfig(learning_rate=0.1)"),
            (True, None, "train the adapters"),
            (True, "SFTConfig", "train the adapters"),
        ],
    )
    def test_the_fix_is_in_the_terms_of_the_trainer_and_its_adapters(self, adapters, arguments, fix):
        class LowRate(OddBatch):
            FIXES = {
                "torch": "lr=0.1",
                "trainer": "TrainingArguments(learning_rate=0.1)",
                "peft": "train the adapters",
            }

        trained = dataclasses.replace(model("transformers"), adapters=adapters, arguments=arguments)
        (finding,) = Evaluator([LowRate()]).add(trained, Batch(3), Loader(drops_last=False))
        assert finding.fix == fix


class TestCausality:
    def test_a_consequence_is_listed_under_its_cause_which_takes_its_severity(self):
        rules = [OddBatch(), SlowStep()]
        evaluator = Evaluator(rules)
        findings = evaluator.add(Batch(3), Loader(drops_last=False))
        (cause,) = Causality(rules).grouped(findings)
        assert (cause.rule, cause.severity) == ("odd-batch", "error")
        assert [consequence.rule for consequence in cause.consequences] == ["slow-step"]
