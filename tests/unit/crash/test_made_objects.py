"""A library's object that refuses what it is made of, and failures that look like it and are not."""

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
        {"file": "/home/ada/model.py"},
        {"file": f"{PACKAGES}/torch/nn/modules/teapot.py", "function": "forward"},
        {"file": f"{PACKAGES}/torch/optim/teapot.py", "code": "x = KINDS[name]", "exception": "KeyError"},
        {"file": f"{PACKAGES}/torch/optim/teapot.py", "code": "x = float(name)"},
        {"file": f"{PACKAGES}/transformers/models/teapot/tokenization_teapot.py"},
        {"file": f"{PACKAGES}/datasets/builder.py"},
        {"file": f"{PACKAGES}/monai/data/teapot_reader.py"},
        {"file": f"{PACKAGES}/requests/adapters.py", "exception": "ConnectionError"},
        {"file": f"{PACKAGES}/peft/config.py", "message": "teapots need a newer install of peft"},
        {"file": f"{PACKAGES}/accelerate/accelerator.py", "exception": "FileNotFoundError"},
    ],
)
def test_other_failures_near_the_making_of_an_object_are_none_of_it(case):
    assert explained(**case) == ()


def test_a_row_of_the_table_knows_more():
    (finding,) = explained(
        f"{PACKAGES}/torch/nn/modules/activation.py",
        code='assert self.head_dim * num_heads == self.embed_dim, "..."',
        exception="AssertionError",
        message="embed_dim must be divisible by num_heads",
    )
    assert "cannot be split evenly over its heads" in finding.message
