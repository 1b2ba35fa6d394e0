"""What cannot be written as JSON is told by the file that writes it; and other words of the stack's releases."""

import pytest

from diagnostics.api.explain import explain

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 31, in <module>
    trainer.train()
  File "/opt/venv/lib/python3.10/site-packages/{file}", line 145, in write
    json_string = json.dumps(values)
  File "/usr/lib/python3.10/json/encoder.py", line 180, in default
    raise TypeError(f"Object of type {{o.__class__.__name__}} "
TypeError: Object of type {got} is not JSON serializable
"""


@pytest.mark.parametrize(
    ("file", "got", "told"),
    [
        ("transformers/trainer_callback.py", "ndarray", "returned by compute_metrics"),
        ("transformers/trainer_callback.py", "Tensor", "grad_norm"),
        ("transformers/configuration_utils.py", "int64", "A configuration is being written"),
        ("peft/config.py", "set", "A configuration is being written"),
        ("keras/src/saving/saving_lib.py", "float32", "Keras is writing a model's settings"),
    ],
)
def test_the_file_that_writes_it_tells_what_it_is_part_of(file, got, told):
    (finding,) = explain(TRACEBACK.format(file=file, got=got)).findings
    assert finding.rule == "refused-call"
    assert told in finding.message


@pytest.mark.parametrize("text", [TRACEBACK.format(file="wandb/sdk/run.py", got="int64"), "{}"])
def test_elsewhere_it_is_no_matter_of_keras(text):
    """A setting of a layer was blamed for every such value, whoever wrote it."""
    said = explain(text.replace("{}", "TypeError: Object of type int64 is not JSON serializable"))
    assert not said.findings
    assert "x.item()" in str(said)


def test_keras_is_known_by_its_own_words():
    (finding,) = explain("TypeError: ('Not JSON Serializable:', <tf.Tensor: shape=(), dtype=float32>)").findings
    assert finding.rule == "unusable-setting"


def test_a_column_of_trl_is_told_from_a_key_of_ones_own():
    frame = '  File "/opt/venv/lib/python3.10/site-packages/trl/trainer/dpo_trainer.py", line 7, in row\n    x\n'
    head = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 3, in <module>\n    run()\n'
    (finding,) = explain(f"{head}{frame}KeyError: 'chosen'").findings
    assert "reads a column named chosen" in finding.message
    assert explain(f"{head}KeyError: 'chosen'").findings == ()
