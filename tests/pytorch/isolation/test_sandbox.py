"""The sandbox: whatever the code in it does, nothing outside changes."""

import ctypes
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import threading
import time

import psutil
import pytest
import torch

from diagnostics.collectors.isolation import sandbox
from diagnostics.collectors.isolation.sandbox import (
    SandboxEnded,
    SandboxFault,
    can_sandbox,
    is_sandboxed,
    run_sandboxed,
)

pytestmark = pytest.mark.skipif(not can_sandbox(), reason="needs Linux 6.2 with Landlock, and no GPU in use")


def run(work, seconds=20.0):
    return run_sandboxed(work, time.monotonic() + seconds)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def raised(work):
    """Return the type of the exception that the work raises in a sandbox; None if it raises none."""

    def attempt():
        try:
            work()
        except BaseException as error:
            return type(error).__name__
        return None

    return run(attempt)


class TestResults:
    def test_returns_what_the_work_returns(self):
        assert run(lambda: {"loss": 0.5, "inside": is_sandboxed()}) == {"loss": 0.5, "inside": True}
        assert not is_sandboxed()

    def test_returns_results_larger_than_a_pipe_holds(self):
        assert run(lambda: b"x" * 3_000_000) == b"x" * 3_000_000

    def test_passes_on_the_traceback_of_a_fault(self):
        def failing():
            raise ValueError("no such layer")

        with pytest.raises(SandboxFault, match=r"(?s)in failing.*ValueError: no such layer"):
            run(failing)

    def test_draws_the_random_numbers_that_the_parent_would_draw(self):
        state = random.getstate()
        drawn = run(random.random)
        assert random.getstate() == state
        assert random.random() == drawn

    def test_multiplies_matrices_after_the_parent_did_so_on_threads(self):
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            torch.randn(1500, 1500) @ torch.randn(1500, 1500)
            assert run(lambda: (torch.ones(1500, 1500) @ torch.ones(1500, 1500)).max().item()) == 1500
        finally:
            torch.set_num_threads(before)


class TestEnds:
    def test_work_that_ends_its_process(self):
        with pytest.raises(SandboxEnded, match="ended its process"):
            run(lambda: os._exit(3))

    def test_work_that_crashes(self, folder):
        with pytest.raises(SandboxEnded, match="ended its process"):
            run(lambda: ctypes.string_at(0))
        assert list(folder.iterdir()) == []

    def test_work_that_hangs_is_killed(self):
        begun, before = time.monotonic(), psutil.Process().children()
        with pytest.raises(SandboxEnded, match="did not end in time"):
            run(threading.Event().wait, seconds=0)
        assert time.monotonic() - begun < 30
        assert psutil.Process().children() == before

    def test_a_handler_of_the_script_does_not_see_the_child_end(self):
        seen = []
        before = signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))
        try:
            run(lambda: 1)
            time.sleep(0.01)
            assert seen == []
        finally:
            signal.signal(signal.SIGCHLD, before)


class TestFiles:
    def test_what_is_written_goes_nowhere(self, folder):
        (folder / "log.txt").write_text("kept")
        held = (folder / "held.txt").open("w")

        def write():
            for mode in ("w", "a", "r+"):
                with open("log.txt", mode) as file:
                    file.write("changed")
            (folder / "new.txt").write_text("x")
            held.write("x")
            held.flush()

        assert raised(write) is None
        held.close()
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"log.txt": "kept", "held.txt": ""}

    def test_files_can_be_read(self, folder):
        (folder / "vocabulary.txt").write_text("the")
        assert run(lambda: (folder / "vocabulary.txt").read_text()) == "the"

    def test_the_position_in_an_open_file_stays(self, folder):
        (folder / "rows.txt").write_text("1\n2\n")
        with (folder / "rows.txt").open() as rows:
            run(lambda: rows.read())
            assert rows.read() == "1\n2\n"

    def test_a_pipe_is_not_read(self, folder):
        os.mkfifo(folder / "rows")
        assert raised((folder / "rows").read_text) == "SideEffect"

    @pytest.mark.parametrize(
        "change",
        [
            lambda: os.remove("kept.txt"),
            lambda: os.rename("kept.txt", "x"),
            lambda: os.mkdir("x"),
            lambda: os.truncate("kept.txt", 0),
            lambda: os.open("kept.txt", os.O_WRONLY | os.O_TRUNC),
            lambda: torch.save([1], "kept.txt"),
        ],
    )
    def test_files_stay_as_they_are(self, folder, change):
        (folder / "kept.txt").write_text("kept")
        assert raised(change) in ("SideEffect", "RuntimeError")
        assert [path.name for path in folder.iterdir()] == ["kept.txt"]
        assert (folder / "kept.txt").read_text() == "kept"

    def test_code_in_c_cannot_truncate_a_file(self, folder):
        (folder / "kept.txt").write_text("kept")
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        assert run(lambda: libc.fopen(b"kept.txt", b"w")) is None
        assert (folder / "kept.txt").read_text() == "kept"


class TestOthers:
    @pytest.mark.parametrize(
        "act",
        [
            lambda: os.system("echo x > x"),
            lambda: subprocess.run(["touch", "x"], check=True),
            lambda: os.kill(os.getppid(), signal.SIGTERM),
            os.fork,
            socket.socket,
        ],
    )
    def test_no_other_process_is_reached(self, folder, act):
        assert raised(act) == "SideEffect"
        assert list(folder.iterdir()) == []

    def test_code_in_c_cannot_signal_the_parent(self):
        libc = ctypes.CDLL(None)
        assert run(lambda: libc.kill(os.getppid(), signal.SIGUSR1)) == -1

    def test_shared_memory_is_not_changed(self):
        counter, weights = multiprocessing.Value("i", 5), torch.ones(3).share_memory_()

        def count():
            counter.value += 1

        for change in (count, lambda: weights.add_(1)):
            with pytest.raises(SandboxEnded):
                run(change)
        assert (counter.value, weights.tolist()) == (5, [1, 1, 1])

    def test_printing_is_not_seen(self, capfd):
        run(lambda: os.write(1, b"out"))
        run(lambda: print("out"))
        assert capfd.readouterr() == ("", "")


def test_needs_a_kernel_that_can_forbid_writes(monkeypatch):
    monkeypatch.setattr(sandbox, "_landlock_version", lambda: sandbox.LEAST_VERSION - 1)
    assert not can_sandbox()


@pytest.mark.parametrize("framework", [torch.cuda, torch.distributed])
def test_is_not_used_beside_a_gpu_or_other_ranks(monkeypatch, framework):
    monkeypatch.setattr(framework, "is_initialized", lambda: True)
    assert not can_sandbox()


def test_is_not_used_in_a_process_that_is_slow_to_fork(monkeypatch):
    monkeypatch.setattr(sandbox, "resident_memory", lambda: sandbox.MOST_RESIDENT + 1)
    assert not can_sandbox()
