"""Tests for what a pasted text leaves out: its last line, an assertion's marks, a launched script's traceback."""

import pytest

import diagnostics


def rules_of(text):
    return [finding.rule for finding in diagnostics.explain(text).findings]


LAUNCHED = """\
TypeError: brew() missing 1 required positional argument: 'leaves'
Traceback (most recent call last):
  File "/opt/venv/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/opt/venv/lib/python3.11/site-packages/accelerate/commands/launch.py", line 688, in simple_launcher
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)
subprocess.CalledProcessError: Command '['/opt/venv/bin/python3', 'scripts/train
"""


class TestBesideALauncher:
    def test_the_error_of_the_script_counts(self):
        report = diagnostics.explain(LAUNCHED)
        assert report.crash.exception == "TypeError"
        assert report.crash.message.startswith("brew() missing 1")

    def test_of_an_error_that_a_rule_knows(self):
        known = "IndexError: Target 7 is out of bounds."
        assert rules_of(LAUNCHED.replace(LAUNCHED.splitlines()[0], known)) == ["labels-out-of-range"]

    def test_without_it_the_launcher_s_own_stays(self):
        report = diagnostics.explain(LAUNCHED.partition("\n")[2])
        assert report.crash.exception == "CalledProcessError"


class TestAWarningAboveTheError:
    ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n"
    WARNING = (
        "/opt/torch/utils/checkpoint.py:31: UserWarning: None of the inputs have requires_grad=True. "
        "Gradients will be None\n"
    )

    def test_tells_where_the_graph_ends(self):
        (finding,) = diagnostics.explain(self.WARNING + self.ERROR).findings
        assert finding.rule == "no-gradient"
        assert "none of the inputs of a checkpointed segment requires a gradient" in finding.message
        assert finding.fix.startswith("for adapters on a frozen model: model.enable_input_require_grads()")

    def test_without_it_the_graph_may_end_anywhere(self):
        (finding,) = diagnostics.explain(self.ERROR).findings
        assert "checkpoint" not in finding.message


@pytest.mark.parametrize(
    "words", ["Assertion t >= 0 && t < n_classes failed", "Assertion `t >= 0 && t < n_classes` failed."]
)
def test_an_assertion_of_a_kernel_may_have_lost_its_marks(words):
    assert rules_of(f"{words} error while training with my own teapots") == ["labels-out-of-range"]


@pytest.mark.parametrize(
    "words", ["srun: error: gpu001: task 0: Out Of Memory", "srun: error: c12: tasks 0-3: Out Of Memory"]
)
def test_a_scheduler_that_names_memory_is_heard(words):
    assert rules_of(f"`{words}`") == ["out-of-memory"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("KeyError: 'SemiDataset: \"CocoDataset: \\'file_name\\'\"'", "CocoDataset looks for 'file_name'"),
        ("KeyError: \"TeapotDataset: 'categories'\"", "TeapotDataset looks for 'categories'"),
        ("KeyError: 'a: b'", "'a: b'"),
    ],
)
def test_a_registry_s_key_error_names_class_and_key(text, said):
    report = diagnostics.explain(text)
    assert report.findings == ()
    assert said in report.crash.nature


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("type object 'LoraLoaderMixin' has no attribute '_modify_text_encoder'", ["installation-mismatch"]),
        ("'KettlePeftTrainer' object has no attribute 'accelerator'", ["installation-mismatch"]),
        ("__init__() got an unexpected keyword argument 'pretrained_cfg'", ["installation-mismatch"]),
        ("'Qwen2_5_VLModel' object has no attribute 'embed_tokens'", ["installation-mismatch"]),
        ("AttributeError: 'LlamaAttention' object has no attribute 'num_heads", ["installation-mismatch"]),
        ("AttributeError: Qwen2TokenizerFast has no attribute vocabulary", ["installation-mismatch"]),
        ("'BertClassificationModel' object has no attribute 'fc'", []),
        ("'LlamaKettleModel' object has no attribute 'fc'", []),
        ("type object 'Kettle' has no attribute 'whistle'", []),
        ("'KettleTrainer' object has no attribute 'whistle'", []),
        ("__init__() got an unexpected keyword argument 'whistle'", []),
    ],
)
def test_names_that_only_a_library_asks_for_prove_its_release(text, rules):
    assert rules_of(text) == rules


def test_a_logger_s_words_before_a_message_do_not_hide_its_numbers():
    text = (
        "2018-04-19 10:50:26.59: W tensorflow/core/op_kernel.cc:11] Invalid argument: Incompatible shapes: "
        "[32,109,80] vs. [32,100,80]"
    )
    (finding,) = diagnostics.explain(text).findings
    assert "109 and 100 along axis 1" in finding.message


def test_an_optimizer_without_modes_proves_an_old_accelerate_only_where_a_library_asks():
    error = "AttributeError: 'AdamW' object has no attribute 'train'\n"
    head = "Traceback (most recent call last):\n"
    own = '  File "/home/ada/train.py", line 8, in <module>\n    optimizer.train()\n'
    library = (
        '  File "/opt/site-packages/accelerate/optimizer.py", line 12, in train\n    self.optimizer.train()\n'
    )
    assert rules_of(error) == ["installation-mismatch"]
    assert rules_of(head + own + library + error) == ["installation-mismatch"]
    assert rules_of(head + own + error) == []
