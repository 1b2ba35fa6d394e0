"""The page that takes a traceback says what `diagnose explain` says."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from book.generated.pages import messages_script
from bugs.zoo.keeper.catalogue import load_catalogue
from diagnostics.api.explain import explain
from diagnostics.api.message_table import message_table
from diagnostics.collectors.crash.messages.table import all_messages
from tests.unit.crash.further_examples import MORE, WHOLE
from tests.unit.tracebacks.recorded_forms import RECORDED
from tests.unit.tracebacks.test_pasted_text import PLAIN

ROOT = Path(__file__).resolve().parents[4]
EXHIBITS = list(load_catalogue(ROOT).values())
MESSAGES = [row for row in all_messages() if not row.needs and not row.beside]
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    train(model, loader)
  File "/home/ada/project/train.py", line 18, in train
    loss = step(model, batch)
{frames}{exception}: {message}
"""
FORMS = {
    "traceback": TRACEBACK,
    "windows": TRACEBACK.replace("\n", "\r\n").replace("/home/ada/project/", "C:\\work\\"),
    "colours": "\x1b[31m" + TRACEBACK.replace("\n", "\x1b[0m\n\x1b[31m"),
    "rank": "".join(f"[rank0]: {line}" for line in TRACEBACK.splitlines(keepends=True)),
    "after another": TRACEBACK.format(frames="", exception="KeyError", message="'label'")
    + "\nDuring handling of the above exception, another exception occurred:\n\n"
    + TRACEBACK,
    "bare": "{message}",
    "in a sentence": "I get `{message}` after a while",
}
OWN = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    main()
  File "/home/ada/project/train.py", line 12, in main
    rate = settings["rates"]
  File "/opt/venv/lib/python3.11/site-packages/yaml/mapping.py", line 7, in __getitem__
    return self.held[key]
KeyError: 'rates'
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return a function that asks the page's script for all texts at once."""
    if shutil.which("node") is None:
        pytest.skip("needs node")
    data = tmp_path_factory.mktemp("page") / "messages.js"
    data.write_text(messages_script(EXHIBITS, message_table()))
    program = """
        globalThis.window = {};
        require(process.argv[1]);
        const {answer, fixes, sentence} = require(process.argv[2]);
        const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(texts.map(text => {
            const {found, perhaps, exception, own} = answer(text, window.bugZoo.messages);
            const said = found ? {sentence: sentence(found), fixes: fixes(found)} : {sentence: "", fixes: []};
            return {found: found?.row.rule ?? null, perhaps: perhaps?.row.rule ?? null, exception, own, ...said};
        })));
    """
    script = ROOT / "book" / "_static" / "paste.js"

    def ask(texts):
        done = subprocess.run(
            ["node", "-e", program, str(data), str(script)],
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    return ask


@pytest.mark.parametrize("form", FORMS)
def test_every_message_is_named_as_in_a_terminal(answers, form):
    cases = [(row, example) for row in MESSAGES for example in row.examples]
    texts = []
    for row, example in cases:
        frames = "".join(f'  File "{file}", line 90, in call\n    return run(x)\n' for file in row.frames)
        texts.append(FORMS[form].format(frames=frames, exception=row.exception, message=example))
    wrong = [
        (row.rule, example, answer["found"])
        for (row, example), answer in zip(cases, answers(texts), strict=True)
        if answer["found"] != row.rule
    ]
    assert not wrong, "\n".join(map(repr, wrong))


def test_a_failure_of_ones_own_is_none_of_ours_and_shows_the_readers_line(answers):
    assert answers([OWN]) == [
        {
            "found": None,
            "perhaps": None,
            "exception": "KeyError",
            "own": {"file": "/home/ada/project/train.py", "line": "12"},
            "sentence": "",
            "fixes": [],
        }
    ]


def in_traceback(exception, message, files=()):
    frames = "".join(f'  File "{file}", line 90, in call\n    return run(x)\n' for file in files)
    return TRACEBACK.format(frames=frames, exception=exception, message=message)


TEXTS = (
    *(in_traceback(row.exception, example, row.frames) for row in MESSAGES for example in row.examples),
    *(in_traceback(exception, message) for _, exception, message in MORE),
    *RECORDED.values(),
    *PLAIN.values(),
    *(text for rule, _, text in WHOLE.values() if rule != "launcher-failure"),
)
ONLY_A_TERMINAL = (  # what a recogniser knows beside the table, or before the row that the page finds
    "module 'numpy' has no attribute 'float'",
    "/Adam/Initializer/zeros",
    "Data cardinality is ambiguous:",
    "Process finished with exit code 137",
    "'BertTokenizer' object has no attribute 'batch_encode_plus'",
)


@pytest.fixture(scope="module")
def both(answers):
    """Return each text with the finding of `explain` and the answer of the page, where `explain` has one."""
    triples = zip(TEXTS, map(explain, TEXTS), answers(TEXTS), strict=True)
    return [
        (text, report.findings[0], answer)
        for text, report, answer in triples
        if report.findings and not any(words in text for words in ONLY_A_TERMINAL)
    ]


class TestSaysWhatExplainSays:
    def test_the_same_rule(self, both):
        assert len(both) > 900
        assert [(text, one.rule) for text, one, answer in both if answer["found"] != one.rule] == []

    def test_the_same_fixes_where_the_page_has_any(self, both):
        with_fixes = [(text, one, answer) for text, one, answer in both if answer["fixes"]]
        assert len(with_fixes) > 0.8 * len(both)
        different = [
            (text, answer["fixes"])
            for text, one, answer in with_fixes
            if answer["fixes"] != [one.fix, *one.alternatives]
        ]
        assert different == []

    def test_the_same_sentence_where_the_page_has_one(self, both):
        with_sentence = [(text, one, answer) for text, one, answer in both if answer["sentence"]]
        assert len(with_sentence) > 0.75 * len(both)
        assert [text for text, one, answer in with_sentence if answer["sentence"] != one.message] == []

    def test_the_sentence_has_the_numbers_of_the_message(self, answers):
        text = in_traceback("ValueError", "expected sequence of length 31 at dim 1 (got 17)")
        (answer,) = answers([text])
        assert answer["sentence"].startswith("One example has 31 values and another 17, ")
        assert answer["fixes"][0] == "data_collator=DataCollatorWithPadding(tokenizer), which pads each batch"


RANK = (
    "ValueError: Argument `output` must have rank (ndim) `target.ndim - 1`. Received: target.shape={}, "
    "output.shape={}"
)
PRODUCT = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x4096 and 1024x10)"


@pytest.mark.parametrize(
    ("text", "sentence", "fix"),
    [
        (
            RANK.format("(32, 10)", "(32, 10)"),
            "this loss expects class indices",
            "for one-hot targets, use keras.losses.CategoricalCrossentropy",
        ),
        (
            RANK.format("(None,)", "(None, 20, 10)"),
            "this loss expects class indices",
            "set return_sequences=False",
        ),
        (RANK.format("(32, 1)", "(32, 20, 10)"), "this loss expects class indices", "set return_sequences=False"),
        (
            PRODUCT,
            "Cannot multiply matrices of shapes (32, 4096) and (1024, 10)",
            "use nn.Linear(4096, 10), if this is a Linear",
        ),
    ],
)
def test_page_and_terminal_say_the_same_of_shapes(answers, text, sentence, fix):
    (finding,), (answer,) = explain(text).findings, answers([text])
    assert (finding.message, [finding.fix, *finding.alternatives]) == (answer["sentence"], answer["fixes"])
    assert sentence in finding.message
    assert finding.fix.startswith(fix)


def test_nothing_is_named_in_prose_or_in_code(answers):
    texts = [
        "My loss does not fall. What can I do?",
        "model = nn.Linear(4, 2)\nloss = model(x).sum()\n",
        "",
        "\x00" * 9,
    ]
    assert [(answer["found"], answer["perhaps"]) for answer in answers(texts)] == [(None, None)] * len(texts)


def test_a_long_log_is_read_in_bounded_time(answers):
    log = "step 1 loss 0.5\n" * 100_000 + TRACEBACK.format(
        frames="", exception="IndexError", message="Target 3 is out of bounds."
    )
    assert answers([log])[0]["found"] == "labels-out-of-range"


def test_the_message_of_a_graph_is_read_behind_the_frames_of_its_node(answers):
    node = "Detected at node encoder/norm/mul_2 defined at (most recent call last):\n"
    frames = (
        '  File "/opt/venv/lib/python3.11/site-packages/keras/src/layers/layer.py", line 1002, in __call__\n\n'
    )
    told = "OOM when allocating tensor with shape[128,64,64] and type float"
    message = f"Graph execution error:\n\n{node}{90 * frames}{told}"
    text = TRACEBACK.format(frames="", exception="ResourceExhaustedError", message=message)
    assert answers([text])[0]["found"] == "out-of-memory"
