"""A traceback whose last line was not copied: what its frames show is told, and that the reason is missing."""

from __future__ import annotations

import pytest

import diagnostics

TORCH = "/home/ada/venv/lib/python3.10/site-packages/torch"


def told(*frames, after=""):
    """Return the report of a traceback that ends with these frames: file, function, source."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/ada/train.py", line 12, in <module>',
        "    main()",
    ]
    for file, function, code in frames:
        lines += [f'  File "{file}", line 40, in {function}', f"    {code}"]
    return diagnostics.explain("\n".join([*lines, after]))


def test_a_traceback_without_its_end_is_said_to_be_cut_off():
    report = told((f"{TORCH}/nn/functional.py", "nll_loss", "return torch._C._nn.nll_loss_nd(input)"))
    assert report.title == "explained a traceback without its last line"
    assert not report.findings
    assert report.crash.nature.startswith("The line with the exception is missing")
    assert report.crash.nature.endswith("opy the text to its end.")


def test_the_last_frame_is_named():
    nature = told(("/home/ada/net.py", "forward", "return self.head(x)")).crash.nature
    assert nature == (
        "The line with the exception is missing: it says why. The last frame shown is forward "
        "(/home/ada/net.py:40). Copy the text to its end."
    )


def test_a_log_that_goes_on_after_its_frames_was_not_ended_there():
    lines = ['  File "/home/ada/train.py", line 12, in step', "    loss.backward()"]
    with pytest.raises(diagnostics.InvalidInput):
        diagnostics.explain("\n".join([*lines, *(f"step {n} loss 0.5" for n in range(80))]))


BOX = """\
│     51 │   │   data = self.dataset[index]     │
│ ❱   54 │   │   return self.collate_fn(data)   │
│                                               │
│ /opt/venv/lib/python3.10/site-packages/transf │
│ ormers/data/data_collator.py:586 in __call__  │
│                                               │
│   585 │   │   │   else:                       │
│ ❱ 586 │   │   │   │   pad(features)           │
"""


def test_a_box_of_rich_without_its_top_is_read():
    said = "ValueError: expected sequence of length 12 at dim 1 (got 9)"
    (finding,) = diagnostics.explain(f"{BOX}╰───────────────────────────────────────────────╯\n{said}").findings
    assert finding.rule == "ragged-batch"
    cut = diagnostics.explain(BOX).crash
    assert [frame.function for frame in cut.frames] == ["__call__"]
