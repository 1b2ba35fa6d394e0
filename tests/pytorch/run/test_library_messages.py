"""What libraries warn of and log is collected once each, with the script's line, and shown as without it."""

from __future__ import annotations

import json
import logging
import textwrap
import warnings

import pytest

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.report.report import Report
from diagnostics.run.observers.library_messages import MAX_LENGTH, MAX_MESSAGES, LibraryMessageObserver

LIBRARY = compile(
    "import logging, warnings\n"
    "def warn(text, kind=UserWarning):\n    warnings.warn(text, kind, stacklevel=2)\n"
    "def log(text, level=logging.WARNING):\n    logging.getLogger('vision.models').log(level, text)\n",
    "/home/me/lib/python3.11/site-packages/vision/models.py",
    "exec",
)


@pytest.fixture
def collected(tmp_path):
    """Return a function that runs a script beside a library, and returns what was collected."""

    def run(script: str):
        faults: list[Exception] = []
        library = {"__name__": "vision.models"}
        exec(LIBRARY, library)
        file = tmp_path / "train.py"
        file.write_text(textwrap.dedent(script))
        patches = Patches()
        observer = LibraryMessageObserver(patches, FaultGuard(on_fault=faults.append))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__", **library})
        finally:
            patches.undo()
        assert faults == []
        return observer.messages

    return run


def test_locates_a_warning_of_pytorch_in_the_script(collected):
    script = """
        import torch

        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        scheduler.step()
        """
    (message,) = collected(script)
    assert (message.library, message.kind, message.where.line) == ("torch", "UserWarning", 7)
    assert message.text.startswith("Detected call of `lr_scheduler.step()` before `optimizer.step()`")


def test_locates_a_warning_of_compiled_code(collected):
    (message,) = collected("import numpy as np\nnp.log(np.zeros(2))")
    assert (message.library, message.kind, message.where.line) == ("compiled code", "RuntimeWarning", 2)


def test_keeps_the_first_line_of_a_table_without_its_colours(collected):
    (message,) = collected("log('\\x1b[1mVisionTransformer LOAD REPORT\\x1b[0m from: base\\nkey | MISSING')")
    assert message.text == "VisionTransformer LOAD REPORT from: base"


def test_counts_a_message_whose_numbers_differ_once(collected):
    (message,) = collected("for step in range(12):\n    log(f'{step} rows were skipped')")
    assert message.times == 12
    assert (message.library, message.kind) == ("vision", "WARNING")
    assert str(message).endswith("train.py:2, 12 times: 0 rows were skipped")


@pytest.mark.parametrize(
    "script",
    [
        "import warnings\nwarnings.warn('of the script itself')",
        "import logging\nlogging.getLogger('me').warning('of the script itself')",
        "warn('deprecated', DeprecationWarning)",
        "warn('will change', FutureWarning)",
        "log('progress', 20)",
        "import warnings\nwarnings.simplefilter('ignore')\nwarn('silenced')",
        "import warnings\nwith warnings.catch_warnings(record=True):\n    warn('caught')",
    ],
)
def test_leaves_out_what_is_no_message_of_a_library_to_its_user(collected, script):
    assert collected(script) == ()


def test_keeps_a_bounded_number_of_bounded_messages(collected):
    letters = "import string\n"
    messages = collected(letters + "for a in string.ascii_letters:\n    log(a * 10_000)")
    assert len(messages) == MAX_MESSAGES
    assert all(len(message.text) <= MAX_LENGTH + 1 for message in messages)


def test_shows_and_restores_everything_as_before(collected, caplog):
    before = warnings._showwarnmsg_impl, logging.Logger.callHandlers
    with pytest.warns(UserWarning, match="seen by the user"):
        collected("warn('seen by the user')")
    collected("log('logged for the user')")
    assert caplog.messages == ["logged for the user"]
    assert (warnings._showwarnmsg_impl, logging.Logger.callHandlers) == before


def test_lists_the_messages_below_the_findings(collected):
    messages = collected("for word in 'alpha beta gamma delta epsilon zeta'.split():\n    log(word)")
    report = Report("ran train.py", script="train.py", library_messages=messages)
    assert "reported by the libraries" in str(report)
    assert "and 1 more: --verbose lists them" in str(report)
    assert str(report).endswith(
        "Nothing found. 0 rules could be checked. Read what the libraries reported, above."
    )
    assert "zeta" in str(Report("ran train.py", library_messages=messages, verbose=True))
    listed = json.loads(report.to_json())["library_messages"]
    assert [message["text"] for message in listed][-1] == "zeta"
    assert "zeta" in report.to_markdown()
    assert "zeta" in report.rendered("html")
