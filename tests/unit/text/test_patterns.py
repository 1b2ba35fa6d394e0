"""The time of every regular expression grows with the length of the text, and no faster."""

import functools
import json
import re
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

import diagnostics
from diagnostics.collectors.crash.messages.table import all_messages, python_pattern
from diagnostics.collectors.tracebacks.unknown_errors import FILE, entries, of_packages
from diagnostics.errors import InvalidInput
from diagnostics.report.library_findings import rows
from diagnostics.report.redaction import _secrets
from tests.support.patterns import Sources, Written, growth, recorded

PACKAGE = Path(diagnostics.__file__).parent


@functools.cache  # and not at import: it takes seconds, in each process that only collects the tests
def written():
    """Return the patterns that the library's modules hold."""
    return Sources(PACKAGE).patterns()


def of_the_table():
    """Return the patterns of the table of messages, each once; the page for pasted errors has them, too."""
    found = {}
    for row in all_messages():
        parts = [python_pattern(part) for part in (row.within, row.at, row.beside) if part]
        for pattern in (row.compiled, *map(re.compile, parts)):
            found.setdefault(pattern, Written(f"table:{row.rule}", pattern, False))
    return list(found.values())


def of_unknown_errors():
    """Return the patterns of the words and lines that are known where no rule is."""
    rows = (row for rows in tomllib.loads(FILE.read_text("utf-8")).values() for row in rows)
    rows = [row for row in rows if isinstance(row, dict)]
    written = [row[key] for row in rows for key in ("pattern", "line", "caller", "file") if key in row]
    patterns = map(re.compile, [*written, *entries("brings").values()])
    searched = (
        "no_such_attribute",
        "cannot_import",
        "argument",
        "object",
        "scheduler",
        "site",
        "of_packages",
        "pythons_own",
        "excludes",
        "no_error",
        "ends_run",
        "underscored",
        "label_kernel",
        "set_to_block",
        "passes_on",
        "difference_in_loss",
    )
    of_names = [
        Written(f"packages:{name}", of_packages(name), name not in searched) for name in entries("packages")
    ]
    return [*of_names, *(Written(FILE.name, pattern, False) for pattern in patterns)]


def of_lines():
    """Return the patterns of causes that a line shows, each with what stands around it."""
    table = tomllib.loads((PACKAGE / "collectors/crash/line_causes.toml").read_text("utf-8"))
    shown = {
        use.get("before", "") + cause["pattern"] + use.get("after", "")
        for use in table["uses"]
        for cause in table["causes"]
        if use["of"] == cause["of"]
    }
    functions = (cause["function"] for cause in table["causes"] if "function" in cause)
    needs = tomllib.loads((PACKAGE / "collectors/crash/live/cause.toml").read_text("utf-8")).values()
    words = (need["words"] for need in needs if "words" in need)
    patterns = sorted({*shown, *functions, *words, *(use["message"] for use in table["uses"])})
    return [
        Written("line_causes.toml", re.compile(pattern.replace("@name@", "name")), False) for pattern in patterns
    ]


def slow(patterns):
    found = ((one, growth(one.pattern, at_start=one.at_start)) for one in patterns)
    return [f"{one.place} {one.pattern.pattern[:80]}: {text}" for one, text in found if text is not None]


def test_patterns_of_the_library_are_collected():
    places = {one.place.partition(":")[0] for one in written()}
    assert len(written()) > 200
    assert {
        "diagnostics/collectors/tracebacks/nature.py",
        "diagnostics/report/redaction.py", "diagnostics/collectors/crash/keras.py",
    } <= places  # fmt: skip


@pytest.mark.parametrize(
    "pattern", [r"\w*x", r"(?:a|b)*c\w+d", r"foo.*bar", r"(\w+\s?)+:", r"^(?:list )?\w* out|\w+\(\) arg", r" +$"]
)
def test_slow_pattern_is_noticed(pattern):
    assert growth(re.compile(pattern)) is not None


@pytest.mark.parametrize("pattern", [r"\bfoo\w{0,40}bar", r"^\w*x", r"(?<!\w)\w+ out", r"[^\n]{1,300}x"])
def test_quick_pattern_is_not_taken_for_slow(pattern):
    assert growth(re.compile(pattern)) is None


@pytest.mark.parametrize("part", range(8))
def test_patterns_of_the_library_take_linear_time(part):
    assert slow(written()[part::8]) == []


def test_patterns_of_library_messages_take_linear_time():
    assert slow([Written("library_findings.toml", row.pattern, False) for row in rows()]) == []


def test_patterns_of_secrets_take_linear_time():
    assert slow([Written("secrets.toml", pattern, False) for pattern in _secrets()]) == []


def test_patterns_of_unknown_errors_take_linear_time():
    assert len(of_unknown_errors()) > 80
    assert slow(of_unknown_errors()) == []


def test_patterns_of_lines_take_linear_time():
    assert len(of_lines()) > 60
    assert slow(of_lines()) == []


@pytest.mark.parametrize("part", range(8))
def test_patterns_of_the_table_take_linear_time(part):
    assert slow(of_the_table()[part::8]) == []


TEXTS = [
    "\n".join(
        [f"[rank{rank}]: Traceback (most recent call last):", f'[rank{rank}]:   File "train.py", line 3, in main',
         f"[rank{rank}]:     step()", f"[rank{rank}]: ValueError: no batch"]
    )
    for rank in (0, 1)
] + [
    "[rank1]:   File \"train.py\", line 3, in main\n[rank1]:     step()\n[rank1]: ValueError: no batch",
    json.dumps({"log": 'Traceback (most recent call last):\n  File "train.py", line 3\n    step()\nOSError: no'}),
]  # fmt: skip
LINES = [  # of source, and what they raise
    ("tf.optim.Adam()", "AttributeError: 'module' object has no attribute 'Adam'"),
    ("if best < loss:", "TypeError: '<' not supported between instances of 'NoneType' and 'float'"),
    ("step = checkpoint['step']", "KeyError: 'step'"),
    ("size = images[0]['bbox']  # coco", "KeyError: 'bbox'"),
    ("x = rows[3]", "TypeError: 'NoneType' object is not subscriptable"),
    ("x = self.layer.bias + 1", "TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'"),
    ('mode = Mode.FAST\n  File "/usr/lib/python3.11/enum.py", line 3, in __getattr__\n    raise',
     'AttributeError: FAST'),
    ("model.load_state_dict(w)", 'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in '
     'state_dict: "body.weight".\n\tUnexpected key(s) in state_dict: "body.0.weight".'),
]  # fmt: skip
WORDS = "Watchdog", "OOM when allocating", "Tried to allocate", "ignore_mismatched_sizes"
IN_OTHER_TESTS = (
    "messages/known.py",
    "messages/table.py",
    "redaction.py:62",
    "tracebacks/unknown_errors.py",
    "report/library_findings.py",
)
# A machine's name; what Linux writes; the rows of our own table.
OF_NO_TEXT_OF_THE_USER = "redaction.py:76", "out_of_memory.py:240", "api/message_table.py"


def test_patterns_made_at_run_time_take_linear_time():
    frame = 'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    {}\n{}'
    rows = [
        frame.format("step()", f"{row.exception}: {example}")
        for row in all_messages()
        for example in row.examples
        if any(words in example for words in WORDS)
    ]
    with recorded(PACKAGE) as found:
        for text in [*TEXTS, *rows, *(frame.format(*line) for line in LINES)]:
            with suppress(InvalidInput):
                diagnostics.explain(text)
    constant = {one.pattern for one in written()}
    made = {
        one.pattern: one
        for one in found
        if one.pattern not in constant and not any(name in one.place for name in IN_OTHER_TESTS)
    }
    assert slow(made.values()) == []
    missed = Sources(PACKAGE).made_at_run_time() - {one.place for one in found}
    assert [
        place for place in missed if not any(name in place for name in IN_OTHER_TESTS + OF_NO_TEXT_OF_THE_USER)
    ] == []
