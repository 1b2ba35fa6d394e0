"""What others record of a program's operations is the same under `diagnose run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.side_effects.onlookers import LONG, ONCE, WHEN
from tests.support.torch_process import one_thread, torch_forks  # noqa: F401

SCRIPT = Path(__file__).with_name("onlookers.py")
PLAIN = "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__')"
OBSERVED = "import sys; from diagnostics.cli.main import main; sys.exit(main())"
CASES = [(one.__name__, when) for one in (*ONCE, *LONG) for when in WHEN]
EACH = 2 * len(WHEN) + 1  # one of so many cases is tried in the normal run, in turn at another time
OFTEN = {
    ("jit_trace", "before"),
    ("compiled_step", "during"),
    ("packed_tensors", "during"),
    ("function_mode", "during"),
}


def few():
    """Yield all cases as parameters, most of them marked exhaustive."""
    for number, (name, when) in enumerate(CASES):
        often = number % EACH == 0 or (name, when) in OFTEN
        yield pytest.param(name, when, id=f"{name}-{when}", marks=() if often else pytest.mark.exhaustive)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "when"), list(few()))
def test_onlooker_records_the_same(name, when, torch_forks, tmp_path):  # noqa: F811
    report = tmp_path / "report.json"
    options = ("--fail-on", "never", "--format", "json", "--output", str(report))
    plain = torch_forks.run(PLAIN, str(SCRIPT), name, when, folder=tmp_path)
    assert plain.returncode == 0, plain.stderr
    observed = torch_forks.run(OBSERVED, "diagnose", "run", *options, str(SCRIPT), name, when, folder=tmp_path)
    assert observed.returncode == 0, observed.stderr
    for one, other in zip(plain.stdout.splitlines(), observed.stdout.splitlines(), strict=True):
        assert other == one
    assert "recorded 0 " not in plain.stdout or "checkpoint" in name or name == "offloaded"
    assert [line for line in observed.stderr.splitlines() if "diagnostics/" in line or "Warning" in line] == [
        line for line in plain.stderr.splitlines() if "diagnostics/" in line or "Warning" in line
    ]
    written = json.loads(report.read_text())
    assert written["faults"] == []
    assert [found["message"] for found in written["findings"] if found["severity"] != "note"] == []
    if (name, when) != ("compiled_step", "before"):  # else no step of it can be seen
        assert {"forward passes", "loss"} <= {stage["name"] for stage in written["stages"]}
