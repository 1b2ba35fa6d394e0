"""Messages in which a library names a bug, and those in which it does not."""

import pytest

from diagnostics.facts.library_messages import LibraryMessage
from diagnostics.facts.where import Where
from diagnostics.report.library_findings import named_by_libraries, rows
from diagnostics.rules.registry import all_rules

SOFTMAX = (
    "You are using a softmax over axis -1 of a tensor of shape (None, 25, 1). This axis has size 1. The softmax "
    "operation will always return the value 1, which is likely not what you intended. Did you mean to use a "
    "sigmoid instead?"
)
PADDING = (
    "A decoder-only architecture is being used, but right-padding was detected! For correct generation results, "
    "please set `padding_side='left'` when initializing the tokenizer."
)
HARMLESS = [
    ("torch", "None of the inputs have requires_grad=True. Gradients will be None"),  # also in any evaluation
    ("torch", "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated"),
    ("transformers", "Setting `pad_token_id` to `eos_token_id`:0 for open-end generation."),
    ("keras", "Layer 'conv1d' (of type Conv1D) was passed an input with a mask attached to it."),
    ("transformers", "Some weights of BertModel were not initialized and are newly initialized: ['pooler.bias']"),
    ("keras", PADDING),  # of another library
    (
        "keras",
        SOFTMAX.replace("axis -1 of a tensor of shape (None, 25, 1)", "axis 0 of a tensor of shape (1, 25, 1)"),
    ),
]


@pytest.mark.parametrize(
    ("library", "text", "rule", "words"),
    [
        ("keras", SOFTMAX, "saturated-activations", "of a tensor of shape (None, 25, 1)"),
        ("transformers", PADDING, "padding-attended", "padded on the right"),
    ],
)
def test_a_message_that_names_a_bug_is_a_finding(library, text, rule, words):
    message = LibraryMessage(library, "UserWarning", text, 3, Where("train.py", 7, "main"))
    (finding,) = named_by_libraries([message, message])
    assert (finding.rule, finding.severity, finding.where) == (rule, "warning", message.where)
    assert words in finding.message
    assert finding.evidence == {"library": library, "said": text, "times": 3}


@pytest.mark.parametrize(("library", "text"), HARMLESS)
def test_any_other_message_is_none(library, text):
    assert named_by_libraries([LibraryMessage(library, "UserWarning", text)]) == ()


def test_every_row_is_of_a_rule():
    assert {row.rule for row in rows()} <= {rule.name for rule in all_rules()}
