"""`explain` says of a pasted text, whatever its form, what it says of Python's own traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import diagnostics
from tests.unit.tracebacks.pasted_forms import PREFIXED, REAL, TEST_TRAIN, TRAIN, interleaved
from tests.unit.tracebacks.recorded_forms import LINE, RECORDED

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
    "a worker's chain": """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 9, in <module>
    for batch in loader:
ValueError: Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/transformers/tokenization_utils_base.py", line 720, in as_tensor
    return torch.tensor(value)
ValueError: expected sequence of length 9 at dim 1 (got 7)

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", line 54, in fetch
    return self.collate_fn(data)
ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' \
to have batched tensors. Perhaps your features (`labels` in this case) have excessive nesting.
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
        timeout=300,
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
        assert where == (name, 3, "loss_of"), text


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


class TestRecordedForms:
    @pytest.mark.parametrize("form", RECORDED)
    def test_are_explained_as_pythons_own_traceback_is(self, form):
        report = diagnostics.explain(RECORDED[form])
        findings, words, (_, line, function), faults = essence(report)
        (plain,) = diagnostics.explain("IndexError: Target 5 is out of bounds.").findings
        assert findings == [("labels-out-of-range", plain.message)]
        assert (words, faults) == (("IndexError", "Target 5 is out of bounds."), ())
        assert (line, function in ("train", "step", "main")) == (11, True)
        assert [frame.code for frame in report.crash.frames if frame.yours][-1] == LINE
        assert report.title == "explained the text of a traceback"


def launched(root, exitcode=1):
    """Write what torchrun prints after its ranks, shortened: its own traceback and its summary."""
    return f"""\
E0102 10:11:12.345000 4711 torch/distributed/elastic/api.py:869] failed (exitcode: {exitcode}) local_rank: {root}
Traceback (most recent call last):
  File "/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/env/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 269, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-02_10:11:12
  host      : box
  rank      : {1 - root} (local_rank: {1 - root})
  exitcode  : -15 (pid: 4712)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 4712
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-02_10:11:11
  host      : box
  rank      : {root} (local_rank: {root})
  exitcode  : {exitcode} (pid: 4713)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def of_rank(rank, text):
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


LOST = PLAIN["no rule's"].replace(
    "struct.error: unpack requires a buffer of 4 bytes", "RuntimeError: Connection closed by peer [127.0.0.1]:5000"
)


class TestRanks:
    def rules(self, report):
        return [finding.rule for finding in report.findings]

    @pytest.mark.parametrize("root", [0, 1])
    def test_the_one_that_failed_first_is_explained_though_another_ended_first(self, root):
        told = of_rank(1 - root, PLAIN["a worker's"]) + of_rank(root, PLAIN["labels"]) + launched(root)
        report = diagnostics.explain(told)
        assert self.rules(report) == ["labels-out-of-range"]
        assert report.title == f"explained the failure of rank {root}, one of 2 in the text"

    @pytest.mark.parametrize("first", [0, 1])
    def test_lines_of_several_are_told_apart(self, first):
        texts = [of_rank(first, PLAIN["labels"]), of_rank(1 - first, LOST)]
        report = diagnostics.explain(interleaved(*texts) + launched(first))
        assert essence(report) == essence(diagnostics.explain(PLAIN["labels"]))
        assert report.title == f"explained the failure of rank {first}, one of 2 in the text"

    def test_without_a_summary_the_one_that_began_to_fail_first(self):
        report = diagnostics.explain(of_rank(3, PLAIN["labels"]) + of_rank(0, PLAIN["a worker's"]))
        assert self.rules(report) == ["labels-out-of-range"]
        assert report.title == "explained the failure of rank 3, one of 2 in the text"

    def test_that_failed_alike_are_counted(self):
        text = "".join(of_rank(rank, PLAIN["labels"]) for rank in range(4))
        assert diagnostics.explain(text).title == "explained the failure of rank 0, one of 4 in the text"

    def test_that_say_nothing_but_in_the_first_a_rule_knows_leave_the_word_to_another(self):
        report = diagnostics.explain(of_rank(0, LOST) + of_rank(1, PLAIN["labels"]) + launched(0))
        assert self.rules(report) == ["labels-out-of-range"]
        assert report.title == "explained the failure of rank 1, one of 2 in the text"

    def test_without_prefixes_the_launcher_still_comes_last(self):
        report = diagnostics.explain(PLAIN["labels"] + launched(0))
        assert essence(report) == essence(diagnostics.explain(PLAIN["labels"]))
        assert report.title == "explained the text of a traceback"

    def test_without_a_rule_for_it_the_launcher_does_not_stand_for_it(self):
        own = (
            'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    lr\nKeyError: "lr"\n'
        )
        report = diagnostics.explain(own + launched(0))
        assert (report.crash.exception, self.rules(report)) == ("KeyError", [])
        assert self.rules(diagnostics.explain(own + launched(0, exitcode=-9))) == ["out-of-memory"]
        assert self.rules(diagnostics.explain(of_rank(0, own) + launched(1))) == ["launcher-failure"]

    def test_of_a_search_come_before_its_own_report(self):
        tune = '\nTraceback (most recent call last):\n  File "tune.py", line 9, in <module>\n    tune.run(train)\n'
        tune += "ray.tune.error.TuneError: ('Trials did not complete', [train_1])\n"
        assert self.rules(diagnostics.explain(PLAIN["labels"] + tune)) == ["labels-out-of-range"]

    def test_that_was_killed_is_told_by_the_launcher(self):
        report = diagnostics.explain(of_rank(0, LOST) + launched(1, exitcode=-9))
        assert self.rules(report) == ["out-of-memory"]

    def test_of_which_the_launcher_alone_speaks(self):
        report = diagnostics.explain(launched(1))
        assert report.crash.exception == "ChildFailedError"
        assert self.rules(report) == ["launcher-failure"]

    @pytest.mark.slow
    @pytest.mark.exhaustive
    def test_of_a_real_launch(self, project):
        (project / "ddp.py").write_text(
            "import time, torch.distributed as dist, train\ndist.init_process_group('gloo')\n"
            "if dist.get_rank() == 0:\n    time.sleep(0.5)\ntrain.main()\n"
        )
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "ddp.py"]
        report = diagnostics.explain(printed(project, command))
        findings, words, where, _ = essence(report)
        assert [rule for rule, _ in findings] == ["labels-out-of-range"]
        assert (words[1], where) == ("Target 2 is out of bounds.", ("train.py", 3, "loss_of"))
        assert report.title.startswith(("explained the failure of rank", "explained the text"))


class TestSeveralFailures:
    def test_alike_are_counted(self):
        report = diagnostics.explain("retrying\n".join([PLAIN["labels"]] * 12))
        assert essence(report) == essence(diagnostics.explain(PLAIN["labels"]))
        assert report.title == "explained the failure on line 111, one of 12 in the text"

    def test_of_one_program_the_last_is_explained(self):
        report = diagnostics.explain(PLAIN["labels"] + "retrying\n" + PLAIN["a worker's"])
        assert [finding.rule for finding in report.findings] == ["ragged-batch"]
        assert report.title == "explained the failure on line 11, one of 2 in the text"

    def test_one_that_was_caught_does_not_stand_for_a_later_one_that_no_rule_knows(self):
        texts = [PLAIN["a worker's"], PLAIN["labels"], PLAIN["no rule's"]]
        report = diagnostics.explain("\n".join(texts))
        assert report.findings == ()
        assert report.title == "explained the failure on line 24, one of 3 in the text"

    @pytest.mark.parametrize("said", ["KeyboardInterrupt", "BrokenPipeError: [Errno 32] Broken pipe", "EOFError"])
    def test_what_comes_of_a_failure_does_not_hide_it(self, said):
        frame = '  File "/home/ada/train.py", line 9, in main\n    wait()\n'
        after = f"Traceback (most recent call last):\n{frame}{said}\n"
        report = diagnostics.explain(PLAIN["labels"] + after)
        assert [finding.rule for finding in report.findings] == ["labels-out-of-range"]

    @pytest.mark.parametrize("before", ["Exception ignored in: <function _f at 0x7f>", "--- Logging error ---"])
    def test_one_that_python_ignored_does_not_count(self, before):
        report = diagnostics.explain(PLAIN["no rule's"] + f"{before}\n{LOST}")
        assert report.crash.exception == "error"
        assert report.title == "explained the text of a traceback"


class TestViewers:
    """What a page or a window does to a text on its way into the clipboard."""

    SAID = ("IndexError", "Target 2 is out of bounds.")

    def test_a_stamp_on_a_line_of_its_own(self):
        text = "".join(f"2026-01-02 10:11:12.{n}\n{line}\n" for n, line in enumerate(PLAIN["labels"].splitlines()))
        assert essence(diagnostics.explain(text)) == essence(diagnostics.explain(PLAIN["labels"]))

    def test_indents_that_are_gone(self):
        text = "".join(f"{line.removeprefix('    ')}\n" for line in PLAIN["labels"].splitlines())
        assert essence(diagnostics.explain(text)) == essence(diagnostics.explain(PLAIN["labels"]))

    def test_source_without_indent_that_looks_like_a_name(self):
        text = PLAIN["labels"].replace("    main()", "yield")
        assert essence(diagnostics.explain(text)) == essence(diagnostics.explain(PLAIN["labels"]))

    def test_places_that_are_links(self):
        text = (
            "IndexError Traceback (most recent call last)\n"
            "[c:\\\\Users](file:///c:/Users)\\\\Ada\\\\train.ipynb Cell 16 line 2\n"
            "      [1](vscode-notebook-cell:/c%3A/train.ipynb#X21?line=0) epochs = 1\n"
            "----> [2](vscode-notebook-cell:/c%3A/train.ipynb#X21?line=1) loss_of(labels)\n\n"
            "[/usr/lib/python3/dist-packages/torch/nn/functional.py](https://localhost:8080/#) in nll_loss(x, y)\n"
            "   3025     label_smoothing = 0.0\n-> 3026     return torch._C._nn.cross_entropy_loss(\n\n"
            "IndexError: Target 2 is out of bounds.\n"
        )
        report = diagnostics.explain(text)
        assert (report.crash.exception, report.crash.message) == self.SAID
        assert str(report.crash.where).endswith("train.ipynb Cell 16:2")
        assert [frame.code for frame in report.crash.frames] == [
            "loss_of(labels)",
            "return torch._C._nn.cross_entropy_loss(",
        ]


class TestNotTracebacks:
    @pytest.mark.parametrize(
        "text",
        [
            "/home/ada/train.py:3: UserWarning: IndexError: Target 2 is out of bounds.\n  loss_of(labels)\n",
            "[W python_anomaly_mode.cpp:122] Warning: Error detected in NllLossBackward0. Traceback of forward "
            'call that caused the error:\n  File "/home/ada/train.py", line 3, in f\n    return loss(x)\n'
            " (function _print_stack)\n",
            'def check(x):\n    raise IndexError("Target 2 is out of bounds.")\n',
            "INFO trainer: skipped 3 files: IndexError: Target 2 is out of bounds.\nepoch 2: loss 0.4\n",
            "2026-01-02 10:11:12 WARNING loader: IndexError: Target 2 is out of bounds.\n",
            "E   \nE   \n",
            "╭─ results ─╮\n│ train.py:3 in f │\n╰───────────╯\n",
            "\x00\x01\x02",
            "===== FAILURES =====\n",
        ],
    )
    def test_are_not_taken_for_one(self, text):
        with pytest.raises(diagnostics.InvalidInput, match="explain\\(\\) was given"):
            diagnostics.explain(text)

    def test_one_whose_numbers_are_broken_is_told_without_them(self):
        text = PLAIN["a worker's"].replace("[3] at entry 0", "[│3] at entry 0")
        report = diagnostics.explain(text)
        assert (report.crash.first_line[:5], report.faults) == ("stack", ())
        (finding,) = report.findings
        assert (finding.rule, finding.message) == (
            "ragged-batch",
            "The examples of one batch have different shapes.",
        )
