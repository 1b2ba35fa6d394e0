"""A library's own line that uses a name of an optional package, and NameErrors that are something else."""

import pytest

from diagnostics.api.explain import explain

TEXT = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 8, in <module>
    trainer = build(settings)
  File "{file}", line 90, in build
    x = {name}(y)
NameError: name '{name}' is not defined
"""
COLAB = """\
[/usr/local/lib/python3.8/dist-packages/diffusers/pipelines/pipeline_utils.py](https://localhost:8080/#) in \
from_pretrained(cls, pretrained_model_name_or_path, **kwargs)
    826 
    827                 is_diffusers_model = issubclass(class_obj, diffusers.ModelMixin)
--> 828                 transformers_version = version.parse(transformers.__version__)
    829                 is_transformers_model = (

NameError: name 'transformers' is not defined
"""


def findings(file, name):
    return explain(TEXT.format(file=f"/opt/venv/lib/python3.11/{file}", name=name)).findings


def test_the_package_that_brings_the_name_is_told():
    (finding,) = findings("site-packages/trl/trainer/utils.py", "LoraConfig")
    assert finding.rule == "installation-mismatch"
    assert finding.message.startswith(
        "trl's own line (trl/trainer/utils.py:90) uses LoraConfig, which it imports only where it finds peft"
    )
    assert finding.fix.startswith("python -m pip install -U peft")


@pytest.mark.parametrize(
    ("library", "name", "package"),
    [
        ("transformers", "torch", "torch"),
        ("transformers", "init_empty_weights", "accelerate"),
        ("transformers", "flash_attn_func", "flash-attn"),
        ("peft", "bnb", "bitsandbytes"),
        ("open_clip", "Image", "pillow"),
    ],
)
def test_the_usual_names_have_their_package(library, name, package):
    (finding,) = findings(f"site-packages/{library}/modeling.py", name)
    assert finding.fix.startswith(f"python -m pip install -U {package},")


def test_a_name_of_no_known_package_is_looked_for_in_the_file():
    (finding,) = findings("site-packages/timm/layers/teapot.py", "brew")
    assert finding.fix.startswith("look in timm/layers/teapot.py:90".removesuffix(":90"))


def test_a_notebook_s_frames_tell_it_too():
    (finding,) = explain(COLAB).findings
    assert finding.fix.startswith("python -m pip install -U transformers")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("site-packages/pandas/core/frame.py", "brew"),  # imports all that it uses
        ("site-packages/transformers/trainer.py", "unicode"),  # of Python 2
        ("site-packages/detectron2/layers/nms.py", "_C"),  # its compiled part
        ("json/decoder.py", "brew"),  # Python's own library
    ],
)
def test_other_missing_names_are_not_of_an_optional_package(file, name):
    assert findings(file, name) == ()


def test_a_line_of_one_s_own_within_a_library_s_call_is_one_s_own():
    text = TEXT.format(file="/opt/venv/lib/python3.11/site-packages/transformers/trainer.py", name="metric")
    own = '  File "/home/ada/train.py", line 3, in compute\n    return metric.compute(x)\nNameError: '
    report = explain(text.replace("NameError: ", own))
    assert report.findings == ()
    assert "metric had no value when the line ran" in report.crash.nature
