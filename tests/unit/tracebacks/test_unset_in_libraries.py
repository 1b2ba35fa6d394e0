"""A variable without a value: in a library's own line it is a slip of that release, not the reader's."""

import pytest

import diagnostics

TEXT = """Traceback (most recent call last):
  File "/home/ada/train.py", line 9, in <module>
    run(model)
  File "{file}", line 40, in prepare
    return wrapped
UnboundLocalError: local variable 'wrapped' referenced before assignment
"""


def test_in_a_library_the_release_is_named():
    file = "/opt/venv/lib/python3.10/site-packages/accelerate/accelerator.py"
    nature = diagnostics.explain(TEXT.format(file=file)).crash.nature
    assert "a slip of that release" in nature
    assert "pip install -U accelerate" in nature


@pytest.mark.parametrize(
    "file", ["/home/ada/net.py", "/opt/venv/lib/python3.10/site-packages/keras/src/trainers/trainer.py"]
)
def test_in_a_line_of_ones_own_or_a_training_loop_it_is_told_as_before(file):
    nature = diagnostics.explain(TEXT.format(file=file)).crash.nature
    assert "wrapped gets its value in a part that did not run" in nature
