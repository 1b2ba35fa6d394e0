"""The line that a finding gets from its training, where its rule knows none."""

import pytest

from diagnostics import Finding, Report
from diagnostics.engine.finding import STAGES
from diagnostics.facts.where import NO_PLACES, Places, Where
from diagnostics.report.merge import TrainingReports, located, merged
from diagnostics.rules.registry import all_rules

RULES = {rule.name: rule for rule in all_rules()}
NAMES = ("loader", "model", "loss", "backward", "optimizer", "training")
LOOP = Places(*(Where("train.py", line, name) for line, name in enumerate(NAMES, 1)))
FIT = Places(optimizer=Where("train.py", 5, "compile"), training=Where("train.py", 6, "fit"))


def place(rule, places, **given):
    finding = Finding(rule, "warning", RULES[rule].stage, "seen", "change", **given)
    where = located(finding, places, RULES[rule]).where
    return None if where is None else where.function


@pytest.mark.parametrize(
    ("rule", "of_loop", "of_fit"),
    [
        ("unscaled-inputs", "loader", "fit"),
        ("ragged-batch", "loader", "fit"),
        ("dead-units", "model", "fit"),
        ("probabilities-as-logits", "loss", "fit"),
        ("unreached-parameters", "backward", "fit"),
        ("non-finite-loss", "loss", "fit"),
        ("learning-rate-too-high", "optimizer", "compile"),
        ("evaluation-at-chance", None, None),
        ("growing-memory", None, None),
    ],
)
def test_a_finding_gets_the_line_that_its_stage_is_about(rule, of_loop, of_fit):
    assert (place(rule, LOOP), place(rule, FIT), place(rule, NO_PLACES)) == (of_loop, of_fit, None)


def test_a_line_that_the_rule_knows_is_kept():
    assert place("dead-units", LOOP, where=Where("model.py", 9, "forward")) == "forward"


@pytest.mark.parametrize("stage", STAGES)
def test_a_rule_of_a_project_is_about_the_line_of_its_stage(stage):
    finding = Finding("own-rule", "note", stage, "seen", "change")
    assert located(finding, NO_PLACES, None) == finding
    assert located(finding, LOOP, None).where in (
        None,
        LOOP.loader,
        LOOP.model,
        LOOP.loss,
        LOOP.backward,
        LOOP.optimizer,
    )


def test_each_training_of_a_script_has_its_own_lines():
    first, second = (Report("watched", (Finding(rule, "warning", "model", "seen", "change"),))
                     for rule in ("dead-units", "initial-loss-off"))  # fmt: skip
    report = merged("ran", [TrainingReports(None, first, places=LOOP), TrainingReports(None, second, places=FIT)])
    assert {finding.rule: finding.where.function for finding in report.findings} == {
        "dead-units": "model", "initial-loss-off": "fit",
    }  # fmt: skip
