"""Messages that are not written as the program printed them, and tracebacks of which a part is lost."""

import contextlib

import pytest

import diagnostics

SPAWNED = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "C:\\Users\\ada\\envs\\net\\lib\\multiprocessing\\spawn.py", line 116, in spawn_main
    exitcode = _main(fd, parent_sentinel)
  File "C:\\Users\\ada\\envs\\net\\lib\\runpy.py", line 265, in run_path
"""


def rules_of(text):
    return [finding.rule for finding in diagnostics.explain(text).findings]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("RuntimeError: Can't call `numpy()` on Tensor that requires grad.", "graph-misuse"),
        ("Can\N{RIGHT SINGLE QUOTATION MARK}t call numpy() on Tensor that requires grad", "graph-misuse"),
    ],
)
def test_marks_do_not_hide_a_known_sentence(text, rule):
    assert rules_of(text) == [rule]


@pytest.mark.parametrize(
    "text",
    ["The Model trains, and the accuracy is 0.93 after 4 epochs.", "NameError: name 'Module' is not defined"],
)
def test_other_short_texts_are_not_taken_for_one(text):
    found = []
    with contextlib.suppress(diagnostics.InvalidInput):
        found = rules_of(text)
    assert found == []


def test_process_being_spawned_is_known_without_its_exception():
    report = diagnostics.explain(SPAWNED)
    assert [finding.rule for finding in report.findings] == ["worker-failure"]
    assert "if __name__" in report.findings[0].fix


def test_exception_is_found_where_the_indent_was_lost_in_part():
    text = """\
 File "/home/ada/train.py", line 3, in step
      return attend(q)
  File "/home/ada/model.py", line 9, in attend
      return kernel(q)
 ValueError: num_samples should be a positive integer value, but got num_samples=0
"""
    report = diagnostics.explain(text)
    assert rules_of(text) == ["emptied-dataset"]
    assert report.crash.frames[-1].function == "attend"


class TestShapesOfOldKeras:
    def first(self, message):
        (finding,) = diagnostics.explain(f"ValueError: {message}").findings
        return finding.rule, finding.fix

    def test_array_without_rows_is_no_matter_of_shapes(self):
        rule, fix = self.first(
            "Error when checking input: expected input_1 to have 4 dimensions, but got array with shape (0, 1)"
        )
        assert (rule, "path" in fix) == ("emptied-dataset", True)

    @pytest.mark.parametrize(
        ("axes", "shape", "begins"),
        [
            (4, "(None, 28, 28, 1, 1)", "x.squeeze(-1)"),
            (3, "(5600, 1)", "print(x.dtype)"),
            (2, "(900, 60, 300)", "x.reshape(len(x), -1)"),
            (4, "(900, 28, 28)", "set x = x[..., None]"),
        ],
    )
    def test_axes_tell_what_to_change(self, axes, shape, begins):
        asked = f"Error when checking input: expected input_1 to have {axes} dimensions, but got array with shape"
        rule, fix = self.first(f"{asked} {shape}")
        assert (rule, fix[: len(begins)]) == ("shape-mismatch", begins)


@pytest.mark.parametrize(
    ("name", "saved", "built", "told"),
    [
        ("embedding.weight", "[900, 30]", "[700, 30]", "number of rows of embedding"),
        ("pos_embed.weight", "[197, 30]", "[257, 30]", "number of positions of pos_embed"),
        ("fc.weight", "[9, 30]", "[7, 30]", "number of outputs of fc"),
        ("conv1.weight", "[64, 3, 7, 7]", "[64, 1, 7, 7]", "number of inputs of conv1"),
    ],
)
def test_weights_of_another_size_are_told_by_what_their_axes_count(name, saved, built, told):
    text = (
        f"size mismatch for {name}: copying a param with shape torch.Size({saved}) from checkpoint, the shape in "
        f"current model is torch.Size({built})."
    )
    (finding,) = diagnostics.explain(text).findings
    assert (finding.rule, told in finding.message) == ("shape-mismatch", True)


class TestMarkupAroundTracebacks:
    def test_a_mark_within_a_line_of_code_stays(self):
        start = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
        text = f'{start}    fail("`x`")\nValueError: `x`\n'
        assert diagnostics.explain(text).crash.message == "`x`"

    def test_frames_glued_by_hand_are_read(self):
        text = """\
Traceback (most recent call last):
  File "train.py", line 42,in step
    loss = ctc(logits, ids, a, b)
  File "/usr/lib/python3/dist-packages/torch/nn/functional.py", line 90, inctc_loss
    zero_infinity)
RuntimeError: Expected tensor to have size at least 7 at dimension 1, but got size 4for argument #2 'targets'
"""
        report = diagnostics.explain(text)
        assert [frame.function for frame in report.crash.frames] == ["step", "ctc_loss"]
        assert rules_of(text) == ["shape-mismatch"]

    def test_listed_frames_within_a_message_begin_no_failure(self):
        text = """\
  File "train.py", line 42, in step
    model.fit(x)
InvalidArgumentError: Graph execution error:

Detected at node 'gather' defined at (most recent call last):
  File "train.py", line 12, in build
    y = embed(x)
"""
        assert diagnostics.explain(text).crash.exception == "InvalidArgumentError"


class TestArgumentsOfACommand:
    USAGE = "usage: tune.py [-h] [--local_rank LOCAL_RANK] [--epochs EPOCHS]\n"
    ADVICE = "change it to read from `os.environ['LOCAL_RANK']` instead. See the manual\n  warnings.warn(\n"

    @pytest.mark.parametrize(
        "error",
        [
            "tune.py: error: unrecognized arguments: --local-rank=0",
            "**tune.py: error: the following arguments are required: --data**",
        ],
    )
    def test_refusal_counts_and_not_the_advice_before_it(self, error):
        assert rules_of(f"{self.ADVICE}{self.USAGE}{error}\n") == ["unusable-setting"]

    def test_refusal_counts_and_not_the_launcher_that_reports_it(self):
        launched = (
            "Traceback (most recent call last):\n"
            '  File "/opt/lib/python3.9/site-packages/accelerate/launch.py", line 7, in main\n    run()\n'
            "subprocess.CalledProcessError: Command '['python', 'tune.py']' returned non-zero exit status 2.\n"
        )
        assert rules_of(f"{self.USAGE}tune.py: error: unrecognized arguments: --x\n{launched}") == [
            "unusable-setting"
        ]

    def test_advice_alone_is_no_failure(self):
        found = []
        with contextlib.suppress(diagnostics.InvalidInput):
            found = rules_of(self.ADVICE)
        assert found == []


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("expected 4D input (got 2D input)", "BatchNorm2d"),
        ("expected 2D or 3D input (got 4D input)", "BatchNorm1d"),
    ],
)
def test_axes_of_a_batch_norm_are_known_without_frames(message, name):
    (finding,) = diagnostics.explain(f"ValueError: {message}").findings
    assert (finding.rule, name in finding.message) == ("shape-mismatch", True)


@pytest.mark.parametrize(("sizes", "told"), [((4, 3), "RGBA"), ((1, 3), "grayscale"), ((5, 3), "")])
def test_sizes_that_may_be_channels_are_told_as_that(sizes, told):
    one, other = sizes
    text = f"The size of tensor a ({one}) must match the size of tensor b ({other}) at non-singleton dimension 0"
    (finding,) = diagnostics.explain(text).findings
    assert ("holds image channels" in finding.message, told in finding.message) == (bool(told), True)


class TestPartsOfATraceback:
    def test_condition_above_a_bare_assertion_error_is_told(self):
        text = "it says\n```\nassert boxes.shape[0] != 0\nAssertionError\n```\n"
        assert "The condition does not hold: boxes.shape[0] != 0" in diagnostics.explain(text).crash.nature

    def test_condition_in_brackets_is_told(self):
        frame = '  File "boxes.py", line 9, in check\n    assert(a.x < b.x)\n'
        text = f"Traceback (most recent call last):\n{frame}AssertionError\n`"
        assert "a.x < b.x" in diagnostics.explain(text).crash.nature

    def test_mark_of_a_page_is_no_part_of_the_key(self):
        text = (
            "`opt.load_state_dict(saved['optimizer'])\nKeyError: 'optimizer'`\n\nThere are `model` and `step`.\n"
        )
        assert "no part 'optimizer'" in diagnostics.explain(text).crash.nature


def test_path_that_was_cut_by_hand_is_still_a_librarys():
    text = """\
File ".../transformers/models/tiny.py", line 84, in attend
    sink=sink.to(query.dtype)
AttributeError: 'NoneType' object has no attribute 'to'
"""
    assert not any(frame.yours for frame in diagnostics.explain(text).crash.frames)


class TestReleases:
    @pytest.mark.parametrize(
        "message",
        [
            "cannot import name 'DynamicCache' from 'ours.cache' (/home/ada/ours/cache.py)",
            "module 'torchlike' has no attribute 'compile'",
            "module 'torch' has no attribute 'compile_all'",
            "partially initialized module 'torch' has no attribute 'fx' (most likely due to a circular import)",
            "'Cache' object has no attribute 'drop'",
            "'BertSentimentModel' object has no attribute 'dropout2'",
            "'GPTTinyHead' object has no attribute 'bias2'",
            "GemmaShop.__init__() got an unexpected keyword argument 'device_map'",
        ],
    )
    def test_names_of_ones_own_that_resemble_a_librarys_are_left_alone(self, message):
        told = str(diagnostics.explain(f"ImportError: {message}").findings)
        assert ("lacks it" in told, "class of transformers" in told) == (False, False)


def test_exception_is_found_where_the_frames_are_indented_further():
    text = """\
    Traceback (most recent call last):
        File "tune.py", line 8, in <module>
        train()
        File "tune.py", line 4, in train
        rows = rows.reshape(-1, rows.shape[-2])
    IndexError: tuple index out of range
"""
    crash = diagnostics.explain(text).crash
    assert [(frame.line, frame.code) for frame in crash.frames] == [
        (8, "train()"),
        (4, "rows = rows.reshape(-1, rows.shape[-2])"),
    ]
    assert "rows has fewer axes than the line asks for" in crash.nature


class TestArraysAlone:
    RAGGED = (
        "ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape "
        "after 1 dimensions. The detected shape was (9,) + inhomogeneous part."
    )

    def test_ragged_array_is_told_without_a_collator_unless_a_batch_was_made(self):
        head = "Traceback (most recent call last):\n"
        file = "/opt/lib/python3.10/site-packages/transformers/data/data_collator.py"
        frame = f'  File "{file}", line 4, in pad\n    a()\n'
        ((alone,), (batched,)) = (
            diagnostics.explain(text).findings for text in (self.RAGGED, head + frame + self.RAGGED)
        )
        assert (alone.rule, batched.rule) == ("ragged-batch", "ragged-batch")
        assert ("dtype=object" in alone.fix, "dtype=object" in batched.fix) == (True, False)

    @pytest.mark.parametrize(
        ("shape", "told"),
        [("(1,newaxis,2)", "not a multiple of 2"), ("(7,9)", "9"), ("(-1,4)", "not a multiple of 4")],
    )
    def test_sizes_that_do_not_divide_the_array_are_told(self, shape, told):
        (finding,) = diagnostics.explain(
            f"ValueError: cannot reshape array of size 63 into shape {shape}"
        ).findings
        assert (finding.rule, told in finding.message) == ("shape-mismatch", True)


def test_exception_of_arrow_is_one_without_frames():
    text = "pyarrow.lib.ArrowInvalid: Column 1 named tokens expected length 512 but got length 1000"
    assert (diagnostics.explain(text).crash.exception, rules_of(text)) == ("ArrowInvalid", ["unbatchable-example"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("TypeError: unhashable type: 'list'", "used as a key"),
        ("TypeError: cannot unpack non-iterable int object", "A single number"),
        ("TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'", "Python 3.10"),
        ('TypeError: can only concatenate str (not "int") to str', "of type int"),
        ("ValueError: 'cat' is not in list", "'cat' occurs in the data"),
        ("ValueError: mutable default <class 'net.Cfg'> for field model is not allowed: use", "Python 3.11"),
        ("AttributeError: 'str' object has no attribute 'parse'", "A str was passed where"),
        ("KeyError: 'epoch'", "If that is asked of a checkpoint"),
    ],
)
def test_pythons_own_words_are_told_without_frames(text, told):
    report = diagnostics.explain(text)
    assert (rules_of(text), told in report.crash.nature) == ([], True)


def test_key_in_a_sentence_is_read():
    nature = diagnostics.explain("the program returns KeyError: 'tutor'. That is in line 73.").crash.nature
    assert "'tutor' is written otherwise" in nature
