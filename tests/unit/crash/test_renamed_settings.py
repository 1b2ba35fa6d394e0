"""Settings that a library renamed, moved or took away: each is named with the release, and only that library's."""

import pytest

import diagnostics

REFUSED = "TypeError: {} got an unexpected keyword argument '{}'"


def told(call, name):
    """Return the finding for a refused argument; None if no rule knows it."""
    findings = diagnostics.explain(REFUSED.format(call, name)).findings
    return findings[0] if findings else None


@pytest.mark.parametrize(
    ("call", "name", "cause", "fix"),
    [
        ("TrainingArguments.__init__()", "eval_strategy", "is older", ">=4.41"),
        ("TrainingArguments.__init__()", "evaluation_strategy", "to eval_strategy, and", "eval_strategy=..."),
        ("Seq2SeqTrainingArguments.__init__()", "no_cuda", "older releases of transformers", "use_cpu"),
        ("SFTTrainer.__init__()", "dataset_text_field", "belongs in SFTConfig", "args=SFTConfig("),
        ("__init__()", "use_dora", "saved with a newer PEFT", "-U peft"),
        ("nll_loss()", "reduction", "reduction 0.4.1", "torch.__version__"),
    ],
)
def test_release_and_new_name_are_told(call, name, cause, fix):
    finding = told(call, name)
    assert finding.rule == "installation-mismatch"
    assert cause in finding.message
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("call", "name", "library"),
    [
        ("RunConfig.__init__()", "task", "datasets"),
        ("RunConfig.__init__()", "logging_dir", "transformers"),
        ("WordsModel.__init__()", "gpus", "Lightning"),
        ("Ladder.__init__()", "tokenizer", "TRL"),
        ("Ladder.__init__()", "beta", "DPO"),
    ],
)
def test_a_class_of_ones_own_is_not_blamed_on_a_library(call, name, library):
    finding = told(call, name)
    assert finding is None or library not in f"{finding.message} {finding.fix}"


LAYER = """Traceback (most recent call last):
  File "/home/ada/use.py", line 3, in <module>
    model = load_model("words.h5")
  File "{file}", line 55, in deserialize
    return cls(**config)
TypeError: __init__() got an unexpected keyword argument 'ragged'
"""


def test_a_saved_layer_with_a_setting_of_another_keras_is_told_as_such():
    package = "/opt/venv/lib/python3.6/site-packages/keras/layers/__init__.py"
    (finding,) = diagnostics.explain(LAYER.format(file=package)).findings
    assert finding.rule == "unreadable-checkpoint"
    own = diagnostics.explain(LAYER.format(file="/home/ada/layers/__init__.py"))
    assert all("keras_version" not in found.fix for found in own.findings)


def test_a_table_indexed_by_a_tensor_on_a_gpu_is_moved():
    text = "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)"
    (finding,) = diagnostics.explain(text).findings
    assert "x.to(" in finding.fix
