"""Unit tests of `PackedExamplesAttend`."""

from __future__ import annotations

import dataclasses

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, PackingFacts
from diagnostics.rules.model.packed_examples_attend import PackedExamplesAttend

RULE = PackedExamplesAttend()
CROSSED = PackingFacts(
    input="input_ids",
    mark="positions",
    marker="position_ids",
    rows=4,
    documents=9,
    closed=True,
    separated=True,
    change=6.4,
    spread=2.1,
    loss=0.031,
    loss_exchanged=3.92,
    loss_moves=3.89,
    loss_alone=4.12,
)


def judge(trained=True, **changes):
    packing = dataclasses.replace(CROSSED, **changes)
    return RULE.from_answers(DependenceFacts(packing=packing, trained=trained))


def test_warns_when_positions_restart_but_attention_crosses():
    finding = judge()
    assert (finding.rule, finding.severity) == ("packed-examples-attend", "warning")
    assert finding.evidence["loss"] == 0.031
    assert finding.evidence["loss_exchanged"] == 3.92
    assert finding.evidence["loss_alone"] == 4.12


def test_warns_when_documents_are_numbered_but_attention_crosses():
    finding = judge(mark="segments", marker="1", closed=False, loss_alone=None, trained=False)
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "unclear",
    [
        {"closed": False},  # positions within turns, or within bars
        {"mark": "segments", "separated": False},  # numbered turns
        {"mark": "labels", "marker": ""},  # turns with ignored labels
    ],
)
def test_notes_what_may_be_one_text(unclear):
    assert judge(**unclear).severity == "note"


@pytest.mark.parametrize("change", [0.0, 1e-6])
def test_silent_when_each_document_sees_itself_alone(change):
    assert judge(change=change) is None


def test_not_applicable_without_packed_rows():
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts())
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(why_not={"packing": "no row of the batch holds several documents"}))
