"""`explain` says of a pasted text, whatever its form, what it says of Python's own traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import diagnostics
from tests.pasted_forms import PREFIXED, REAL, TEST_TRAIN, TRAIN

PLAIN = {
    "labels": """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    main()
  File "/home/ada/project/train.py", line 20, in main
    loss = criterion(logits, labels)
           ^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3526, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
IndexError: Target 2 is out of bounds.
""",
    "a message of several lines": """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 12, in <module>
    print(loss.item())
          ^^^^^^^^^^^
RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1

Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
""",
    "a worker's": """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 9, in <module>
    for batch in loader:
  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 733, in __next__
    data = self._next_data()
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 374, in _worker_loop
    data = fetcher.fetch(index)
  File "/home/ada/project/data.py", line 14, in collate
    return torch.stack(rows)
RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [5] at entry 1
""",
    "no rule's": """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    main()
  File "/home/ada/project/train.py", line 8, in main
    header = struct.unpack("<I", data)
struct.error: unpack requires a buffer of 4 bytes
""",
}


def essence(report):
    """What a reader learns: rules, messages, lines, and the exception's own words."""
    where = report.crash.where
    return (
        [(finding.rule, finding.message) for finding in report.findings],
        (report.crash.exception, report.crash.first_line),
        where and (Path(where.file).name, where.line, where.function),
        report.faults,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(TRAIN)
    (folder / "test_train.py").write_text(TEST_TRAIN)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def printed(project, command):
    """Run a program in the project and return what it printed, both streams as a terminal shows them."""
    plain = {"NO_COLOR": "", "COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**os.environ, **plain, "PYTHONPATH": str(project), "IPYTHONDIR": str(project / "ipython")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    return done.stdout


class TestPrinters:
    """Each prints the same failure in a process of its own; the words are PyTorch's, the program is not."""

    @pytest.mark.parametrize("form", REAL)
    def test_is_explained_as_pythons_own_traceback_is(self, project, form):
        text = printed(project, REAL[form])
        report = diagnostics.explain(text)
        findings, words, where, faults = essence(report)
        assert [rule for rule, _ in findings] == ["labels-out-of-range"], text
        assert (words, faults) == (("IndexError", "Target 2 is out of bounds."), ())
        name = "In[1]" if form == "a cell" else "train.py"
        assert where == (name, 3, "<module>" if form == "pytest, one line" else "loss_of"), text


class TestPrefixes:
    @pytest.mark.parametrize("failure", PLAIN)
    @pytest.mark.parametrize("form", PREFIXED)
    def test_are_taken_away(self, form, failure):
        alone = diagnostics.explain(PLAIN[failure])
        text = PREFIXED[form](PLAIN[failure])
        report = diagnostics.explain(text)
        assert essence(report) == essence(alone), text
        assert [frame.code for frame in report.crash.frames] == [frame.code for frame in alone.crash.frames]
        assert report.title == "explained the text of a traceback"
        within = diagnostics.explain(f"epoch 1: loss 0.69\n{text}done\n")
        assert essence(within) == essence(alone)
