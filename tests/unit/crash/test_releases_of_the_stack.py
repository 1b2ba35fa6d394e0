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
            "written by a newer datasets",
        ),
        (
            "AttributeError: 'DynamicCache' object has no attribute 'seen_tokens'",
            "installation-mismatch",
            "comes with a model",
        ),
        (
            "TypeError: GPT2Model.forward() got an unexpected keyword argument 'num_items_in_batch'",
            "installation-mismatch",
            "No column of the data",
        ),
        (
            "AttributeError: 'SFTTrainer' object has no attribute 'tokenizer'",
            "installation-mismatch",
            "processing_class",
        ),
        (
            "AttributeError: 'BitsAndBytesConfig' object has no attribute 'get_loading_attributes'",
            "unusable-setting",
            "quantised already",
        ),
        (
            "ValueError: You are trying to offload the whole model to the disk. Please use `disk_offload`",
            "out-of-memory",
            "put all layers on the disk",
        ),
        ("ValueError: Expected a cuda device, but got: cpu", "unusable-setting", "was given the device cpu"),
    ],
)
def test_what_is_of_another_release_is_told(text, rule, told):
    (finding,) = explain(text).findings
    assert finding.rule == rule
    assert told in finding.message


def test_another_argument_of_forward_is_still_a_column():
    (finding,) = explain("TypeError: GPT2Model.forward() got an unexpected keyword argument 'labels'").findings
    assert finding.rule == "mismatched-call"
