"""Each row of the table of messages: its examples, pasted in several ways and live, give the rule of the row.

Wordings of the installed versions came from running the failure (tests/pytorch/crash/test_usage.py does so again);
those of older versions are the frameworks' own.
"""

import json
import re
import shutil
import subprocess
import time

import pytest

from diagnostics.api.explain import explain
from diagnostics.api.message_table import message_table
from diagnostics.collectors.crash.messages.table import TABLE, all_messages
from tests.unit.crash.further_examples import MORE, WHOLE
from tools.compile_table import compiled

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    train(model, loader)
  File "/home/ada/project/train.py", line 18, in train
    loss = step(model, batch)
{exception}: {message}
"""
LOG = """\
2024-05-02 10:11:12,345 INFO epoch 0
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/ada/project/train.py", line 18, in train
[rank0]:     loss = step(model, batch)
[rank0]: {exception}: {message}
"""
QUOTED = {
    "backticks": "I get `{}` after a while",
    "bare": "{}",
    "quotes": 'The error is: "{}". Any idea?',
    "bold": "**{}**<br/>",
    "wide colon": "RuntimeError\N{FULLWIDTH COLON}{}",
}
MESSAGES = all_messages()
ALONE = [row for row in MESSAGES if not row.needs and not row.beside]
IN_TRACEBACK = [row for row in MESSAGES if row in ALONE or row.frames or row.recogniser == "launchers"]


def named(row):
    return f"{row.rule}-{row.pattern[:50]}"


def rules_of(text):
    return [finding.rule for finding in explain(text).findings]


def pasted(row, example):
    """Yield a message in a traceback and in a log, with the frames that tell what it is about."""
    frames = "".join(f'  File "{file}", line 90, in call\n    return run(x)\n' for file in row.frames)
    for form in (TRACEBACK, LOG):
        margin = "[rank0]: " if form is LOG else ""
        prefixed = "".join(f"{margin}{line}" for line in frames.splitlines(keepends=True))
        text = form.format(exception=row.exception, message=example.replace("\n", f"\n{margin}"))
        yield text.replace(f"{margin}{row.exception}: ", f"{prefixed}{margin}{row.exception}: ")


@pytest.mark.parametrize("row", IN_TRACEBACK, ids=named)
def test_pasted_message_is_explained(row):
    given = [(example, rules_of(text)) for example in row.examples for text in pasted(row, example)]
    assert given == [(example, [row.rule]) for example in row.examples for _ in (TRACEBACK, LOG)]


def in_turn(number):
    """Return two of the ways of quoting for the quick suite, others for the next row."""
    forms = list(QUOTED.items())
    return [forms[(number + offset) % len(forms)] for offset in (0, 2)]


@pytest.mark.parametrize("number", range(len(ALONE)), ids=lambda number: named(ALONE[number]))
def test_message_alone_is_explained(number):
    check_alone(ALONE[number], in_turn(number))


@pytest.mark.exhaustive  # two of the five ways are tried for each row above
@pytest.mark.parametrize("row", ALONE, ids=named)
def test_message_alone_is_explained_however_it_is_quoted(row):
    check_alone(row, QUOTED.items())


def check_alone(row, forms):
    cases = [(how, form.format(example)) for example in row.examples for how, form in forms]
    assert [(how, rules_of(text)) for how, text in cases] == [(how, [row.rule]) for how, _ in cases]


@pytest.mark.parametrize("row", ALONE, ids=named)
def test_live_exception_is_explained(row):
    for example in row.examples:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - of the name in the table
            raise type(row.exception, (Exception,), {})(example)
        assert rules_of(raised.value) == [row.rule], example


@pytest.mark.parametrize(("rule", "exception", "message"), MORE, ids=[f"{c[0]}-{c[2][:60]}" for c in MORE])
def test_further_message_is_explained(rule, exception, message):
    lines = message.replace("\n", "\n[rank0]: ")
    texts = [
        TRACEBACK.format(exception=exception, message=message),
        LOG.format(exception=exception, message=lines),
        *(form.format(message) for form in QUOTED.values()),
    ]
    assert [rules_of(text) for text in texts] == [[rule]] * len(texts)


@pytest.mark.parametrize("name", WHOLE)
def test_words_beside_the_message_count(name):
    rule, fix, text = WHOLE[name]
    (finding,) = explain(text).findings
    assert (finding.rule, finding.fix[: len(fix)]) == (rule, fix)


def first_match(example):
    """Return which row a page would name: the first that matches and needs nothing else."""
    return next((n for n, row in enumerate(ALONE) if row.compiled.search(example)), None)


class TestTable:
    def test_is_compiled_from_its_files(self):
        assert TABLE.read_text("utf-8") == compiled()  # python -m tools.compile_table

    EXAMPLES = [(row, example) for row in ALONE for example in row.examples]

    def test_holds_the_wordings_of_many_frameworks(self):
        assert len(MESSAGES) >= 150
        frameworks = {"PyTorch", "Keras", "TensorFlow", "transformers", "datasets", "accelerate", "Lightning"}
        assert {*frameworks, "NCCL", "gloo", "torchrun", "Linux", "Windows"} <= {row.framework for row in MESSAGES}

    def test_the_first_row_that_matches_has_the_rule(self):
        wrong = [(row.rule, ALONE[first_match(e)].rule, e) for row, e in self.EXAMPLES]
        assert [case for case in wrong if case[0] != case[1]] == []

    def test_a_literal_rules_out_no_match(self):
        examples = {example for _, example in self.EXAMPLES}
        assert all(
            any(literal in example for literal in row.literals)
            for row in MESSAGES
            for example in examples
            if row.compiled.search(example)
        )
        assert all(all(row.literals) for row in MESSAGES)

    def test_each_row_is_the_first_for_one_of_its_examples(self):
        hidden = [row.pattern for n, row in enumerate(ALONE) if n not in map(first_match, row.examples)]
        assert hidden == []

    @pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
    def test_javascript_matches_the_same_rows(self):
        program = """
            const {patterns, examples} = JSON.parse(require("fs").readFileSync(0, "utf8"));
            const compiled = patterns.map(pattern => new RegExp(pattern, "u"));
            const groups = match => Object.fromEntries(
                Object.entries(match?.groups ?? {}).map(([name, held]) => [name, held ?? null]));
            console.log(JSON.stringify(examples.map(example => {
                const row = compiled.findIndex(pattern => pattern.test(example));
                return [row, groups(compiled[row]?.exec(example))];
            })));
        """
        patterns = [row["pattern"] for row in message_table() if not (row["needs"] or row["beside"])]
        given = json.dumps({"patterns": patterns, "examples": [example for _, example in self.EXAMPLES]})
        done = subprocess.run(["node", "-e", program], input=given, capture_output=True, text=True, check=True)
        rows = [first_match(example) for _, example in self.EXAMPLES]
        matches = [ALONE[row].compiled.search(e) for row, (_, e) in zip(rows, self.EXAMPLES, strict=True)]
        expected = [[row, match.groupdict()] for row, match in zip(rows, matches, strict=True)]
        assert json.loads(done.stdout) == expected

    def test_patterns_keep_to_what_both_languages_read_alike(self):
        for row in MESSAGES:
            plain = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "x", row.pattern)  # without escapes and classes
            assert not re.search(r"\(\?(?![:=!]|<\w)|[$]|\.|[*+}?]\+", plain), row.pattern
            escaped = re.findall(r"\\(.)", row.pattern)
            assert set(escaped) <= set("dDwWsSbBn^$\\.*+?()[]{}|/-"), row.pattern

    def test_no_pattern_takes_quadratic_time(self):
        slow = []
        for row in MESSAGES:
            literal = re.sub(r"\W+", " ", row.examples[0])[:200]
            for part in ("a", " ", "1", "'", "[1,", row.examples[0][:-1], row.examples[0][: len(literal) // 2]):
                text = part * (40_000 // max(1, len(part)))
                start = time.process_time()
                row.compiled.search(text)
                if time.process_time() - start > 0.25:
                    slow.append((row.pattern, part))
        assert slow == []

    def test_what_the_book_gets_can_be_written_as_json(self):
        rows = message_table()
        assert json.loads(json.dumps(rows)) == rows
        assert all(row["title"] and row["fix"] and row["pattern"] for row in rows)


class TestLauncher:
    TAIL = """\
  File "/opt/conda/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2024-05-02_10:11:12
  host      : node1
  rank      : 2 (local_rank: 2)
  exitcode  : -11 (pid: 4242)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 4242
============================================================
"""

    def test_a_tail_alone_names_rank_and_signal(self):
        (finding,) = explain("Traceback (most recent call last):\n" + self.TAIL).findings
        assert finding.rule == "launcher-failure"
        assert finding.message == (
            "Rank 2 was killed by SIGSEGV (exit code -11), and torchrun reports nothing else. The cause is in "
            "that process's own output, above this message or in its log."
        )

    @pytest.mark.parametrize("code", ["-11", "1"])
    def test_a_workers_own_traceback_comes_first(self, code):
        worker = TRACEBACK.format(exception="RuntimeError", message="expected scalar type Float but found Double")
        tail = self.TAIL.replace("exitcode  : -11", f"exitcode  : {code}")
        report = explain(f"{worker}\nTraceback (most recent call last):\n{tail}")
        assert [finding.rule for finding in report.findings] == ["dtype-mismatch"]


class TestSpawn:
    CHILD = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "C:\\Python310\\lib\\multiprocessing\\spawn.py", line 116, in spawn_main
    exitcode = _main(fd, parent_sentinel)
  File "C:\\Python310\\lib\\multiprocessing\\spawn.py", line 126, in _main
    self = reduction.pickle.load(from_parent)
EOFError: Ran out of input
"""
    PARENT = """\
Traceback (most recent call last):
  File "C:\\work\\train.py", line 40, in <module>
    for batch in loader:
  File "C:\\Python310\\lib\\multiprocessing\\reduction.py", line 60, in dump
    ForkingPickler(file, protocol).dump(obj)
AttributeError: Can't pickle local object 'Images.__init__.<locals>.<lambda>'
"""

    def test_the_child_alone_sends_the_reader_to_the_parent(self):
        (finding,) = explain(self.CHILD).findings
        assert finding.rule == "worker-failure"
        assert (
            "The traceback of the parent process, above the child's EOFError, names the object" in finding.message
        )

    def test_with_the_parent_the_object_is_named(self):
        (finding,) = explain(self.PARENT + self.CHILD).findings
        assert finding.rule == "worker-failure"
        assert "Images.__init__.<locals>.<lambda> cannot be pickled" in finding.message

    def test_pickling_a_model_to_a_file_is_no_workers_failure(self):
        text = TRACEBACK.format(
            exception="AttributeError", message="Can't pickle local object 'main.<locals>.Net'"
        )
        assert [finding.rule for finding in explain(text).findings] == ["refused-call"]


class TestFixes:
    def fix(self, exception, message):
        (finding,) = explain(TRACEBACK.format(exception=exception, message=message)).findings
        return finding.message, finding.fix

    def test_images_of_several_sizes_are_resized_and_not_padded(self):
        shapes = "[3, 224, 224] at entry 0 and [3, 180, 224] at entry 1"
        message, fix = self.fix("RuntimeError", f"stack expects each tensor to be equal size, but got {shapes}")
        assert "nothing resizes the examples" in message
        assert fix.startswith("use torchvision.transforms.Resize((height, width))")

    def test_a_request_that_is_refused_is_no_want_of_memory(self):
        message, fix = self.fix(
            "RuntimeError",
            "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already "
            "allocated; 9.28 GiB free; 4.68 MiB cached)",
        )
        assert "memory did not run out: the allocation was refused" in message
        assert fix.startswith("watch nvidia-smi")

    def test_sequences_of_several_lengths_are_padded(self):
        shapes = "[12] at entry 0 and [9] at entry 1"
        message, fix = self.fix("RuntimeError", f"stack expects each tensor to be equal size, but got {shapes}")
        assert "nothing pads the shorter examples" in message
        assert fix.startswith("make all examples equally long where the data set returns them, or pad them")

    def test_one_hot_labels_of_a_sparse_loss_are_not_other_rows(self):
        shapes = "got logits shape [8,5] and labels shape [40]"
        message, fix = self.fix(
            "InvalidArgumentError", f"logits and labels must have the same first dimension, {shapes}"
        )
        assert message == (
            "The loss got 40 labels for 8 predictions of 5 classes: the targets are one-hot, but this loss "
            "expects class indices."
        )
        assert "argmax" in fix

    def test_class_indices_are_asked_for_and_not_equal_shapes(self):
        message, fix = self.fix("RuntimeError", "1D target tensor expected, multi-target not supported")
        assert message.startswith("The loss expects class indices, one integer per prediction")
        assert fix == "target = target.squeeze(1)  # indices of shape (n, 1)"

    def test_no_gradients_within_fit_points_to_labels_among_the_inputs(self):
        frame = "/usr/lib/python3.8/site-packages/keras/engine/training.py"
        text = TRACEBACK.replace("/home/ada/project/train.py", frame).replace("in train", "in train_step")
        message = "No gradients provided for any variable: ['k:0']."
        report = explain(text.format(exception="ValueError", message=message))
        assert [finding.rule for finding in report.findings] == ["labels-in-inputs"]


def test_a_stranger_s_error_is_none_of_ours():
    for exception, message in [
        ("KeyError", "'learning_rate'"),
        ("ConnectionError", "HTTPSConnectionPool: Max retries exceeded"),
        ("ModuleNotFoundError", "No module named 'my_project'"),
    ]:
        assert explain(TRACEBACK.format(exception=exception, message=message)).findings == ()
