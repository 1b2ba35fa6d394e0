"""A page that takes __init__ for bold, and a copy of it without the underscores."""

from diagnostics.api.explain import explain
from diagnostics.collectors.tracebacks.clean import with_underscores

MESSAGE = "TypeError: Trainer.{}() got an unexpected keyword argument 'processing_class'"


def test_a_class_s_init_is_read_as_it_was_printed():
    kept, lost = (explain(MESSAGE.format(name)).findings for name in ("__init__", "init"))
    assert [finding.rule for finding in kept] == ["installation-mismatch"]
    assert kept[0].message == lost[0].message


def test_a_method_called_init_is_left_as_it_is():
    for text in (
        "Module.init() missing 1 required positional argument: 'x'",
        "wandb.init() takes 0",
        "init() got an",
    ):
        assert with_underscores(text) == text


CALL = """Traceback (most recent call last):
File "/home/ada/test.py", line 31, in main
{call}
TypeError: init() got an unexpected keyword argument 'gpus'
"""


def test_a_class_that_old_pythons_do_not_name_is_read_as_it_was_printed():
    (finding,) = explain(CALL.format(call="trainer = Trainer(")).findings
    assert "no longer takes the argument gpus" in finding.message


def test_a_function_called_init_keeps_its_name():
    for text in (CALL.format(call="wandb.init(gpus=1)"), CALL.format(call="self.__dict__.update(x)")):
        assert with_underscores(text) == text
