"""`diagnose run` on small scripts that really train, in processes of their own, as a user starts it."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.pytorch.run.started import run, run_forked

# A classifier that learns; what a test needs broken is put in place of a line.
HEALTHY = """
    import sys, time
    import torch
    from torch import nn
    torch.manual_seed(0)
    LABELS = 3
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, LABELS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    inputs = torch.randn(512, 8)
    labels = inputs[:, :3].argmax(1)
    for epoch in range(8):
        for rows in torch.randperm(512).split(32):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    """
NEVER_ZEROED = HEALTHY.replace("optimizer.zero_grad()", "pass").replace("lr=1e-2", "lr=3e-2")
TOO_FEW_OUTPUTS = HEALTHY.replace("LABELS = 3", "LABELS = 2")


@pytest.fixture(scope="module")
def never_zeroed(torch_forks, tmp_path_factory):
    """Run `diagnose run OPTIONS` on a script that never zeroes its gradients, once for the same options."""
    return functools.cache(
        lambda *options: (
            run_forked(torch_forks, tmp_path_factory.mktemp("never"), NEVER_ZEROED, *options)
            if options
            else run(tmp_path_factory.mktemp("never"), NEVER_ZEROED)
        )
    )


# Two runs that several tests read; their options have nothing to do with each other.
JSON, QUIET = ("--format", "json", "--fail-on", "error"), ("--quiet", "--fail-on", "warning")


class TestReport:
    def test_on_a_healthy_script_nothing_is_found_and_its_output_is_its_own(self, diagnose, tmp_path):
        ended = diagnose(HEALTHY)
        plain = subprocess.run(
            [sys.executable, "train.py"],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert (ended.returncode, ended.stdout) == (0, plain.stdout)
        assert "Nothing found." in ended.stderr
        assert re.search("forward passes +128, batches of up to 32", ended.stderr)

    def test_on_a_broken_one_the_cause_is_told_and_it_exits_with_1(self, never_zeroed):
        ended = never_zeroed()
        assert ended.returncode == 1
        assert "error: gradients-not-zeroed" in ended.stderr
        assert ended.stderr.rstrip().count("error: ") == 1

    def test_an_exception_is_explained_after_its_traceback_and_the_exit_code_is_the_scripts(self, forked):
        ended = forked(TOO_FEW_OUTPUTS)
        assert ended.returncode == 1
        before, after = ended.stderr.split("IndexError: Target 2 is out of bounds.\n", 1)
        assert before.startswith("Traceback (most recent call last):\n")
        assert "diagnostics" not in before
        assert "error: labels-out-of-range" in after

    def test_of_a_script_that_trains_nothing_it_says_so(self, diagnose):
        ended = diagnose("print('hello')")
        assert (ended.returncode, ended.stdout) == (0, "hello\n")
        assert "training  none found: no Trainer.train, no Keras fit, and no PyTorch optimizer" in ended.stderr
        assert ended.stderr.endswith("Nothing could be judged.\n")

    def test_of_one_that_does_not_compile_it_says_so(self, diagnose):
        ended = diagnose("if x\n    print(x)\n")
        assert ended.returncode == 1
        assert "SyntaxError: expected ':'\n\ntrain.py does not compile, and was not run" in ended.stderr

    def test_the_scripts_own_exit_code_is_kept(self, diagnose):
        ended = diagnose("import sys; sys.exit(3)", "--format", "json")
        assert ended.returncode == 3
        assert json.loads(ended.stderr)["exit_code"] == 3

    @pytest.mark.parametrize("options", [(), ("--format", "json"), ("--output", "report.txt")])
    def test_the_exit_code_is_the_scripts_though_it_closed_standard_error(self, diagnose, options):
        ended = diagnose("import sys; sys.stderr.close()", *options)
        assert (ended.returncode, ended.stderr) == (0, "")

    def test_a_reader_who_has_seen_enough_costs_neither_exit_code_nor_output(self, tmp_path):
        (tmp_path / "train.py").write_text("print('result')")
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "diagnostics", "run", "train.py"]
        ended = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=write, text=True, timeout=60)
        os.close(write)
        assert (ended.returncode, ended.stdout) == (0, "result\n")

    def test_a_script_may_use_the_library_itself_and_quiet_says_nothing_where_nothing_is_wrong(self, forked):
        text = HEALTHY.replace(
            "for epoch", "import diagnostics\n    watch = diagnostics.watch(model, optimizer)\n    for epoch"
        )
        ended = forked(text + "    print(watch.report().title)\n", "--quiet")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.endswith("watched 128 steps of Sequential\n")


@pytest.mark.slow
def test_a_device_that_fails_in_the_first_step_is_no_fault_of_the_library(forked, tmp_path):
    ended = forked(
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        from bugs import lab

        device = lab.device()
        rows = TensorDataset(torch.randn(16, 4), torch.arange(16) % 3)
        model = torch.nn.Linear(4, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for inputs, labels in DataLoader(rows, batch_size=8):
            loss = torch.nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        "--output",
        "r.json",
        "--quiet",
    )
    report = json.loads((tmp_path / "r.json").read_text())
    assert "line 14, in <module>\n    loss.backward()" in ended.stderr
    assert ([finding["rule"] for finding in report["findings"]], report["faults"]) == (["asynchronous-error"], [])


class TestFormat:
    def test_json_is_the_whole_of_standard_error(self, never_zeroed):
        ended = never_zeroed(*JSON)
        report = json.loads(ended.stderr)
        assert (report["script"], report["exit_code"], report["ok"]) == ("train.py", 0, False)
        assert [finding["rule"] for finding in report["findings"]] == ["gradients-not-zeroed"]

    @pytest.mark.parametrize(
        ("name", "begins"), [("r.json", "{"), ("r.html", "<!DOCTYPE html>"), ("r.txt", "ran "), ("report", "ran ")]
    )
    def test_the_name_of_the_file_says_which(self, diagnose, tmp_path, name, begins):
        ended = diagnose("print(1)", "--output", name)
        assert ended.stderr == f"diagnose: the report is in {tmp_path / name}\n"
        assert (tmp_path / name).read_text().startswith(begins)

    def test_the_file_is_where_it_was_wanted_though_the_script_goes_elsewhere(self, diagnose, tmp_path):
        diagnose("import os; os.chdir('/')", "--output", "r.json")
        assert json.loads((tmp_path / "r.json").read_text())["exit_code"] == 0

    def test_a_file_that_cannot_be_written_after_all_costs_no_report(self, diagnose, tmp_path):
        ended = diagnose("import os; os.mkdir('r.json')", "--output", "r.json")
        first, _, rest = ended.stderr.partition("\n")
        assert first == f"diagnose: {tmp_path / 'r.json'} cannot be written: Is a directory."
        assert json.loads(rest)["exit_code"] == 0

    def test_quiet_says_what_is_wrong(self, never_zeroed):
        assert "error: gradients-not-zeroed" in never_zeroed(*QUIET).stderr


class TestFailOn:
    @pytest.mark.parametrize(
        ("options", "code"),
        [(JSON, 1), (QUIET, 1), (("--fail-on", "never"), 0)],
        ids=["error", "warning", "never"],
    )
    def test_an_error_fails_unless_nothing_shall(self, never_zeroed, options, code):
        assert never_zeroed(*options).returncode == code


class TestIgnore:
    def test_a_rule_says_nothing_and_that_is_mentioned(self, forked):
        ended = forked(NEVER_ZEROED, "--ignore", "gradients-not-zeroed,loss-plateau", "--format", "json")
        report = json.loads(ended.stderr)
        assert "gradients-not-zeroed" not in [finding["rule"] for finding in report["findings"]]
        assert report["ignored"] == {"gradients-not-zeroed": ""}
        assert report["ignored_in_vain"] == ["loss-plateau"]

    def test_the_projects_table_counts_too(self, forked, tmp_path):
        (tmp_path / "pyproject.toml").write_text(
            '[tool.diagnostics.ignore]\ngradients-not-zeroed = "momentum by hand"\n'
        )
        assert "Ignored: gradients-not-zeroed (momentum by hand)." in forked(NEVER_ZEROED).stderr


FOR_EVER = HEALTHY.replace("range(8)", "range(10**9)")


class TestLimits:
    def test_so_many_steps_and_the_script_can_tidy_up(self, forked):
        ended = forked(_in_try(FOR_EVER, "finally:\n    print('tidied up')"), "--max-steps", "40")
        assert ended.returncode == 0
        assert ended.stdout.splitlines()[2:] == ["tidied up"]
        assert "Traceback" not in ended.stderr
        assert "stopped after the limit of 40 steps" in ended.stderr
        assert re.search("forward passes +40, batches of up to 32", ended.stderr)

    def test_so_many_seconds(self, forked):
        ended = forked(FOR_EVER, "--time-limit", "2")
        assert ended.returncode == 0
        assert "stopped after the limit of 2 s" in ended.stderr

    def test_a_script_that_takes_an_interrupt_for_an_early_end_goes_on_with_what_comes_then(self, forked):
        ended = forked(_in_try(FOR_EVER, "except KeyboardInterrupt:\n    print('evaluated')"), "--max-steps", "5")
        assert (ended.returncode, ended.stdout) == (0, "evaluated\n")

    def test_a_limit_that_is_not_reached_is_not_mentioned(self, diagnose):
        ended = diagnose("print(1)", "--max-steps", "5", "--time-limit", "1000")
        assert (ended.returncode, "stopped" in ended.stderr) == (0, False)


def _in_try(text, ending):
    return f"try:\n{textwrap.indent(textwrap.dedent(text), '    ')}\n{ending}"


@pytest.mark.slow
@pytest.mark.exhaustive  # half a minute; `test_cpu_rerun.py` runs a script again, `nox -s verify` this exhibit
class TestReplayOnCpu:
    # The cage of the asynchronous error: its device is simulated where there is no card.
    SCRIPT = str(Path(__file__).resolve().parents[3] / "bugs" / "03_cuda_error" / "train.py")

    def test_tells_the_line_that_truly_failed(self, tmp_path):
        ended = subprocess.run(
            [sys.executable, "-m", "diagnostics", "run", "--replay-on-cpu", "--output", "r.json", self.SCRIPT],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        report = json.loads((tmp_path / "r.json").read_text())
        assert ended.returncode == 1
        assert "once more, on the CPU, with the last batch first (Ctrl-C to stop)" in ended.stderr
        told = [(f["rule"], [c["rule"] for c in f["consequences"]]) for f in report["findings"]]
        assert told == [("labels-out-of-range", ["asynchronous-error"])]
        again = report["stages"][-1]
        assert (again["name"], again["status"]) == ("run again", "stopped")
        line = "loss = torch.nn.functional.cross_entropy(model(**batch).logits, labels)"
        assert f", {line}, with " in again["detail"], again["detail"]
        assert report["faults"] == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_what_was_seen_is_told_and_it_ends_as_python_would(self, tmp_path, number):
        (tmp_path / "train.py").write_text(textwrap.dedent(FOR_EVER).replace("item())", "item(), flush=True)"))
        codes = []
        for launcher in (
            [],
            ["-m", "diagnostics", "run"],
        ):  # after Ctrl-C PyTorch makes `python` itself exit with 1
            process = subprocess.Popen(
                [sys.executable, *launcher, "train.py"],
                cwd=tmp_path,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stdout.readline().startswith("0 ")
            process.send_signal(number)
            errors = process.communicate(timeout=120)[1]
            codes.append(process.returncode)
        assert codes[1] == codes[0] != 0
        assert "✓  forward passes" in errors
        assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
