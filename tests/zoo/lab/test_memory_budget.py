"""The memory budget: real allocations that really fail, in both frameworks, and nobody else's affair."""

import json
import os
import resource
import subprocess
import sys
import textwrap

import pytest

from bugs.lab import memory_budget
from bugs.lab.cache import LabError
from bugs.lab.memory_budget import data_bytes

LIMITS = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts allocations on Linux alone")


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **ONE_THREAD, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def said(done: subprocess.CompletedProcess[str]) -> dict:
    """What the program printed as JSON."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class TestInPyTorch:
    @pytest.fixture(scope="class")
    @classmethod
    def done(cls):
        return run(
            """
            import json, resource, torch
            from bugs import lab

            MIB = 1 << 20
            said = {"before": resource.getrlimit(resource.RLIMIT_DATA)}
            with lab.memory_budget(megabytes=100):
                try:
                    torch.empty(150 * MIB, dtype=torch.uint8)
                except RuntimeError as error:
                    said["error"] = str(error)
                said["smaller"] = torch.ones(60 * MIB, dtype=torch.uint8).numel() // MIB
            said["after"] = resource.getrlimit(resource.RLIMIT_DATA)
            said["larger"] = torch.ones(150 * MIB, dtype=torch.uint8).numel() // MIB
            lab.memory_budget(megabytes=0.5).lift()
            print(json.dumps(said))
            """
        )

    def test_what_does_not_fit_fails_in_pytorchs_words(self, done):
        assert "DefaultCPUAllocator: can't allocate memory: you tried to allocate 157286400" in said(done)["error"]

    def test_a_smaller_one_fits_afterwards(self, done):
        assert said(done)["smaller"] == 60

    def test_at_the_end_of_the_block_the_limits_are_what_they_were(self, done):
        assert (said(done)["after"], said(done)["larger"]) == (said(done)["before"], 150)

    def test_it_says_what_it_does(self, done):
        first, second = done.stderr.splitlines()
        assert first.startswith("lab: This process may take 100 MiB more than the ")
        assert first.endswith(" MiB that it holds now; the system refuses the rest, as a full GPU would.")
        assert second.startswith("lab: This process may take 0.5 MiB more than the ")

    def test_other_processes_are_not_touched(self, done):
        assert done.returncode == 0
        assert resource.getrlimit(resource.RLIMIT_DATA) == LIMITS


class TestInTensorFlow:
    def test_what_does_not_fit_fails_in_tensorflows_words_and_a_smaller_one_fits(self):
        done = run(
            """
            import json, os
            os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
            import tensorflow as tf
            from bugs import lab

            said = {}
            lab.memory_budget(megabytes=200)
            try:
                tf.ones([300, 1 << 18])
            except tf.errors.ResourceExhaustedError as error:
                said["error"] = error.message
            said["smaller"] = float(tf.reduce_sum(tf.ones([100, 1 << 18]))) / (1 << 18)
            print(json.dumps(said))
            """
        )
        assert "OOM when allocating tensor with shape[300,262144] and type float" in said(done)["error"]
        assert said(done)["smaller"] == 100

    def test_with_onednn_it_is_refused_for_tensorflow_would_crash(self):
        # no need of the real one: that it is imported is all that is looked at
        done = run("import sys, bugs.lab as lab\nsys.modules['tensorflow'] = sys\nlab.memory_budget(megabytes=9)")
        assert done.returncode == 1
        assert done.stderr == (
            "TensorFlow with oneDNN does not survive that an allocation is refused: version 2.21 ends with a "
            'segmentation fault at the next. Put os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0" before its import.\n'
        )


class TestWithoutAFramework:
    def test_threads_that_a_process_starts_later_count(self):
        done = run(
            """
            import json, threading
            from bugs import lab
            from bugs.lab.memory_budget import data_bytes

            before, over = data_bytes(), threading.Event()
            lab.memory_budget(megabytes=100)
            threads = [threading.Thread(target=over.wait) for _ in range(3)]
            for thread in threads:
                thread.start()
            stacks = data_bytes() - before
            over.set()
            print(json.dumps({"stacks": stacks / 2**20}))
            """
        )
        stack = resource.getrlimit(resource.RLIMIT_STACK)[0] / 2**20
        assert said(done)["stacks"] >= 3 * min(stack, 2)

    def test_the_starting_shells_own_limit_is_named(self):
        done = run(
            """
            import resource
            from bugs import lab
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
            lab.memory_budget(megabytes=2000)
            """
        )
        assert done.returncode == 1
        before, after = done.stderr.split("the process holds ")
        assert before == "No room for a budget of 2000 MiB: "
        _, after = after.split(" MiB, and the shell that started it allows ")
        assert after == "1024 MiB in all (`ulimit -Hd`). Use one that allows more.\n"


class TestElsewhere:
    def test_another_system_is_told_what_is_needed(self, monkeypatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        with pytest.raises(LabError) as raised:
            memory_budget(megabytes=100)
        assert str(raised.value) == (
            "A memory budget needs Linux, or a CUDA GPU; this system is 'darwin'. Run the exhibit in a Linux "
            "container, in WSL 2, or on a machine with a GPU."
        )

    def test_a_system_that_ignores_the_limit_is_found_out(self, monkeypatch):
        monkeypatch.setattr("resource.setrlimit", lambda which, limits: None)
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        with pytest.raises(LabError) as raised:
            memory_budget(megabytes=10)
        assert str(raised.value) == (
            "This system does not hold a process to a budget: it ignores RLIMIT_DATA, as Linux before 4.7, gVisor "
            "and WSL 1 do. Run the exhibit on a plain Linux, in WSL 2, or on a machine with a CUDA GPU."
        )

    def test_a_real_card_is_held_to_it(self):
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("no CUDA GPU")
        with memory_budget(megabytes=200) as budget, pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
        assert budget.where == torch.cuda.get_device_name()


@pytest.mark.parametrize("megabytes", [0, -1, float("nan"), float("inf"), True, "100", None])
def test_a_budget_is_a_number_above_0(megabytes):
    with pytest.raises(ValueError, match="MiB above 0") as raised:
        memory_budget(megabytes=megabytes)
    assert str(raised.value) == (
        f"memory_budget(megabytes=...): expected a number of MiB above 0, got {megabytes!r}"
    )


def test_what_a_process_holds_grows_with_what_it_takes():
    before = data_bytes()
    block = bytearray(50 << 20)
    assert 50 << 20 <= data_bytes() - before < 60 << 20
    del block
