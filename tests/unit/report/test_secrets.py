"""Each form of a secret is taken out of every text, and what helps others stays."""

import re
import time
import tomllib
from pathlib import Path

import pytest

import diagnostics
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.report.redaction import Redaction
from diagnostics.report.report import Report

SECRETS = tomllib.loads((Path(diagnostics.__file__).parent / "report" / "secrets.toml").read_text("utf-8"))[
    "secrets"
]
EXAMPLES = [(row, example) for row in SECRETS for example in row["examples"]]


@pytest.mark.parametrize(("row", "example"), EXAMPLES, ids=[example[:30] for _, example in EXAMPLES])
def test_secret_is_taken_out_of_every_text(row, example):
    found = re.search(row["pattern"], example, re.VERBOSE)
    secret = found["secret"] if "secret" in found.re.groupindex else found[0]
    for around in ("{}", "login failed: {} is not valid", "run(x, {})  # see", "a\n{}\nb"):
        text = around.format(example)
        assert secret not in Redaction().code(text)
        assert secret not in Redaction().prose(text)


@pytest.mark.parametrize(
    "code",
    [
        'tokenizer.pad_token = "[PAD]"', "AutoTokenizer.from_pretrained(path, token=True)",
        "max_new_tokens=512, sep_token='[SEP]', token=tokens[0]", "token_type_ids=batch['token_type_ids']",
        "def connect(password: str, api_key: str = None):",
        "connect(password=os.environ['PW'], api_key=args.api_key)",
        "loss 0.6931471805599453 after 12,000 steps of 32x784, lr=3e-4", "unexpected keyword argument 'token'",
        "labels-out-of-range, basic training, bearer of bad news", "torch==2.13.0+cu126, commit 1a2b3c4",
    ],
)  # fmt: skip
def test_what_helps_stays(code):
    redaction = Redaction()
    assert (redaction.code(code), redaction.taken) == (code, "")


def test_secret_that_was_cut_is_taken_out_to_its_end():
    crash = CrashFacts("ValueError", "bad token eyJhbGciOiJI" + "x9" * 2_000 + "END", (), live=False)
    assert "x9" not in Report("explained", crash=crash).to_markdown()


def test_texts_in_a_line_of_source_are_taken_out():
    frame = FrameFacts("/home/anna/train.py", 3, "main", 'ask("the patient has a fever", column="label")', True)
    markdown = Report("explained", crash=CrashFacts("ValueError", "no", (frame,), live=False)).to_markdown()
    assert 'ask("[23 characters]", column="label")' in markdown


def test_lines_within_a_text_of_several_are_taken_out():
    program = 'x = 1  # it\'s one\nNOTES = """The patient\nhas a fever.\n"""\nprint(x)'
    assert Redaction().source(program, 3, 5) == ["[12 characters]", '"""', "print(x)"]
    assert Redaction().source(program, 1, 1) == ["x = 1  # it's one"]


def test_time_grows_with_the_length():
    for piece in (
        "password=",
        "token=",
        "eyJ",
        "-----BEGIN A PRIVATE KEY-----",
        "s3://",
        "'",
        '"',
        "a",
        "0:",
        "_a",
    ):
        text, started = piece * (60_000 // len(piece)), time.process_time()
        Redaction().prose(text)
        Redaction().source(text)
        assert time.process_time() - started < 5, piece
