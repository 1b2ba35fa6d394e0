"""`diagnose attach`, and the program that answers it between two steps."""

import json
import os
import random
import resource
import subprocess
import sys
import time

import pytest

from diagnostics.engine.finding import Finding
from diagnostics.report import requests
from diagnostics.report.report import Report
from diagnostics.report.requests import Requests

BAD = Finding("loss-plateau", "warning", "optimizer", "The loss stands still.", "lower the rate")
REPORT = Report("running train.py", (BAD,))
NOBODY = 65534


def start(process, *options, before=None):
    return subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "attach", str(process), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
    )


def ended(asking, answering=None):
    """Let this process look for requests until `attach` has ended; return its exit code and what it printed."""
    while asking.poll() is None:
        if answering is not None:
            answering.look(lambda: REPORT)
        time.sleep(0.01)
    out, err = asking.communicate()
    return asking.returncode, out, err


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(requests, "EVERY_S", 0.05)
    made = Requests()
    yield made
    made.close()


class TestAnswers:
    def test_prints_the_report_and_exits_as_other_commands(self, own):
        drawn = random.getstate()
        code, out, err = ended(start(os.getpid(), "--format", "json"), own)
        assert (code, err) == (1, "")
        assert random.getstate() == drawn
        report = json.loads(out)
        assert (report["title"], report["findings"][0]["rule"]) == ("running train.py", "loss-plateau")
        assert not requests.request_file(os.getuid(), os.getpid()).exists()
        assert not list(requests.folder(os.getuid()).glob(f"{os.getpid()}*"))

    def test_several_may_ask_one_after_the_other(self, own):
        for _ in range(2):
            assert ended(start(os.getpid()), own)[0] == 1

    def test_the_first_of_a_process_answers_and_the_next_once_it_is_closed(self, own):
        second, asked = Requests(), []
        for one in (own, second):
            one._next = 0.0
            one.look(lambda: REPORT)
        asking = start(os.getpid())
        file = requests.request_file(os.getuid(), os.getpid())
        while not file.exists():
            time.sleep(0.01)
        second._next = 0.0
        second.look(lambda: asked.append("second") or REPORT)
        assert asked == []
        own.close()
        assert ended(asking, second)[0] == 1
        second.close()

    def test_a_loop_that_is_over_does_not_keep_the_next_from_answering(self, own, monkeypatch):
        monkeypatch.setattr(requests, "PATIENCE_S", 0.2)
        second = Requests()
        assert ended(start(os.getpid(), "--wait", "30"), second)[0] == 1
        second.close()

    def test_a_forked_child_does_not_answer(self, own):
        asking = start(os.getpid(), "--wait", "30")
        file = requests.request_file(os.getuid(), os.getpid())
        while not file.exists():
            time.sleep(0.01)
        if (child := os.fork()) == 0:
            own._next = 0.0
            own.look(lambda: REPORT)
            os._exit(0)
        os.waitpid(child, 0)
        assert file.exists()
        assert ended(asking, own)[0] == 1

    def test_a_report_that_fails_does_not_reach_the_program(self, own):
        asking = start(os.getpid(), "--wait", "1")
        while asking.poll() is None:
            own.look(lambda: 1 / 0)
            time.sleep(0.01)
        assert "did not answer within 1 s" in asking.communicate()[1]

    def test_a_folder_that_others_may_write_to_is_not_trusted(self, own, tmp_path, monkeypatch):
        monkeypatch.setattr(requests, "folder", lambda _user: tmp_path)
        file = requests.request_file(os.getuid(), os.getpid())
        file.write_text(json.dumps({"format": "text", "redact": True, "number": 1}))
        for mode, answered in ((0o777, []), (0o700, ["1.answer"])):
            tmp_path.chmod(mode)
            own._next = 0.0
            own.look(lambda: REPORT)
            assert [path.name for path in tmp_path.glob("*.answer")] == answered


class TestNoAnswer:
    def said(self, process, *options):
        code, out, err = ended(start(process, *options))
        assert (code, out) == (2, "")
        return err

    def test_no_such_process(self):
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        assert f"diagnose: there is no process {gone.pid} on this machine." in self.said(gone.pid)

    def test_a_process_that_is_not_observed_is_left_alone(self):
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "train"]) as other:
            said = self.said(other.pid, "--wait", "0.5")
            assert other.poll() is None
            other.kill()
        assert f"process {other.pid} did not answer within 0.5 s. It is `" in said
        assert "not `diagnose run`" in said

    def test_a_script_that_makes_no_step(self, tmp_path):
        (tmp_path / "train.py").write_text("import time; time.sleep(60)")
        command = [sys.executable, "-m", "diagnostics", "run", "train.py"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as run:
            said = self.said(run.pid, "--wait", "0.5")
            run.kill()
        assert "it ended no training step meanwhile" in said
        assert f"py-spy dump --pid {run.pid}" in said

    def test_a_process_that_ends_while_attach_waits(self):
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        asking = start(other.pid)
        while not requests.request_file(os.getuid(), other.pid).exists():
            time.sleep(0.01)
        other.kill()
        other.wait()
        assert ended(asking) == (2, "", f"diagnose: process {other.pid} ended before its next step.\n")
        assert not requests.request_file(os.getuid(), other.pid).exists()

    def test_a_full_disk(self):
        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        code, out, err = ended(start(os.getpid(), before=full))
        assert (code, out) == (2, "")
        assert err == f"diagnose: {requests.folder(os.getuid())} cannot be written: File too large.\n"
        assert not list(requests.folder(os.getuid()).glob("*.asked"))

    @pytest.mark.skipif(os.getuid() != 0, reason="only root may start another's process")
    def test_another_users_process(self):
        with subprocess.Popen(["sleep", "60"], user=NOBODY) as other:
            said = self.said(other.pid)
            other.kill()
        assert "belongs to user nobody. Run diagnose attach as that user." in said
