"""What one release of the Hugging Face stack refuses of another's files, code and arguments."""

import pytest

from diagnostics.api.explain import explain


@pytest.mark.parametrize(
    ("text", "rule", "told"),
    [
        (
            "ValueError: Due to a serious vulnerability issue in `torch.load`, even with `weights_only=True`, we "
            "now require users to upgrade torch to at least v2.6 in order to use the function.",
            "installation-mismatch",
            "a PyTorch older than 2.6",
        ),
        (
            "ValueError: Feature type 'List' not found. Available feature types: ['Value', 'ClassLabel']",
            "installation-mismatch",
            "written by a newer release of datasets",
        ),
        (
            "AttributeError: 'SFTTrainer' object has no attribute 'tokenizer'",
            "installation-mismatch",
            "processing_class",
        ),
    ],
)
def test_what_is_of_another_release_is_told(text, rule, told):
    (finding,) = explain(text).findings
    assert finding.rule == rule
    assert told in finding.message


def test_another_argument_of_forward_is_still_a_column():
    (finding,) = explain("TypeError: GPT2Model.forward() got an unexpected keyword argument 'labels'").findings
    assert finding.rule == "mismatched-call"
