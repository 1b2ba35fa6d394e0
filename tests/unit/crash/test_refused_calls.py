"""A library that refuses a call by a check of its own, and failures that look like it and are not."""

import pytest

from diagnostics.api.explain import explain

PACKAGES = "/opt/venv/lib/python3.11/site-packages"
TEXT = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 8, in main
    build(settings)
  File "{file}", line 90, in {function}
    {code}
{exception}: {message}
"""


def explained(file, function="__init__", code="raise ValueError(", exception="ValueError", message="no teapots"):
    return explain(
        TEXT.format(file=file, function=function, code=code, exception=exception, message=message)
    ).findings


@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("torch/optim/teapot.py", "__init__"),
        ("torch/nn/modules/teapot.py", "__init__"),
        ("transformers/training_args.py", "__post_init__"),
        ("transformers/models/teapot/configuration_teapot.py", "__init__"),
        ("trl/trainer/teapot_config.py", "__post_init__"),
        ("keras/src/layers/teapot.py", "__init__"),
        ("pytorch_lightning/callbacks/teapot.py", "__init__"),
        ("monai/networks/nets/teapot.py", "__init__"),
    ],
)
def test_a_check_in_the_making_of_an_object_is_of_its_settings(file, function):
    (finding,) = explained(f"{PACKAGES}/{file}", function)
    assert finding.rule == "unusable-setting"
    assert finding.message == (
        f"{file.split('/')[0]} refuses a setting while it makes an object of it, at /home/ada/train.py:8 in main. "
        "It says: no teapots"
    )


@pytest.mark.parametrize(
    "case",
    [
        {"file": f"{PACKAGES}/torch/nn/modules/teapot.py", "function": "forward"},
        {"file": f"{PACKAGES}/transformers/models/teapot/tokenization_teapot.py"},
        {"file": f"{PACKAGES}/datasets/builder.py", "function": "as_dataset"},
        {"file": f"{PACKAGES}/sklearn/utils/validation.py", "function": "check_teapot", "code": "assert x"},
        {"file": f"{PACKAGES}/tensorflow/python/framework/ops.py", "function": "raise_it", "code": "_raise(e)"},
    ],
)
def test_a_check_in_a_call_is_told_in_its_own_words(case):
    (finding,) = explained(**case)
    assert finding.rule == "refused-call"
    library = case["file"].split("/")[6]
    assert finding.message.startswith(f"{library} refuses what it is given")
    assert ", at /home/ada/train.py:8 in main. " in finding.message
    assert finding.message.endswith(" says: no teapots")


def test_advice_in_the_message_comes_first():
    message = "Teapots cannot be stacked. Please pass stack=False, or use a kettle."
    (finding,) = explained(f"{PACKAGES}/trl/data.py", "stack", message=message)
    assert finding.fix == "as the message says: Please pass stack=False, or use a kettle"


@pytest.mark.parametrize("exception", ["ImportError", "ValueError"])
def test_a_package_that_is_asked_for_is_a_matter_of_the_installation(exception):
    message = "Brewing needs `teapots`. Please install it: pip install teapots"
    (finding,) = explained(f"{PACKAGES}/peft/brew.py", "brew", exception=exception, message=message)
    assert finding.rule == "installation-mismatch"


def test_an_earlier_cause_that_a_row_knows_is_told_instead():
    cause = TEXT.format(
        file="/home/ada/model.py",
        function="forward",
        code="return self.fc(x)",
        exception="RuntimeError",
        message="mat1 and mat2 shapes cannot be multiplied (32x128 and 64x10)",
    )
    outer = TEXT.format(
        file=f"{PACKAGES}/keras/src/brew.py",
        function="brew",
        code="raise ValueError(",
        exception="ValueError",
        message="brewing failed",
    )
    link = "\nThe above exception was the direct cause of the following exception:\n\n"
    (finding,) = explain(cause + link + outer).findings
    assert finding.rule == "shape-mismatch"


@pytest.mark.parametrize(
    "case",
    [
        {"file": "/home/ada/model.py"},
        {"file": f"{PACKAGES}/torch/optim/teapot.py", "code": "x = KINDS[name]", "exception": "KeyError"},
        {"file": f"{PACKAGES}/torch/optim/teapot.py", "code": "x = float(name)"},
        {"file": f"{PACKAGES}/requests/adapters.py", "exception": "ConnectionError"},
        {"file": f"{PACKAGES}/teashop/orders.py", "function": "order"},
        {"file": f"{PACKAGES}/datasets/load.py", "message": "Connection refused", "function": "load"},
        {"file": f"{PACKAGES}/torch/serialization.py", "message": "[Errno 2] No such file", "function": "load"},
        {"file": f"{PACKAGES}/accelerate/accelerator.py", "exception": "FileNotFoundError"},
        {"file": f"{PACKAGES}/keras/src/teapot.py", "exception": "KeyboardInterrupt", "message": ""},
    ],
)
def test_other_failures_in_a_library_are_none_of_it(case):
    assert explained(**case) == ()


def test_a_row_of_the_table_knows_more():
    (finding,) = explained(
        f"{PACKAGES}/torch/nn/modules/activation.py",
        code='assert self.head_dim * num_heads == self.embed_dim, "..."',
        exception="AssertionError",
        message="embed_dim must be divisible by num_heads",
    )
    assert "is not divisible by its number of heads" in finding.message
