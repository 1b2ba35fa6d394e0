"""`largest_batch`: real allocations, really refused, in real child processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

import diagnostics
from diagnostics import InvalidInput
from diagnostics.api.largest_batch import BatchSearch, Trial, _next

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_DATA")
MIB = 2**20

HEAD = """\
    import os, resource, signal, sys, time
    import numpy as np
    import diagnostics

    def hold_to(megabytes):
        status = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
        limit = int(status.split()[1]) * 1024 + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
"""


@pytest.fixture
def run(tmp_path):
    """Run a script that searches, and return what became of it."""

    def start(body, **options):
        file = tmp_path / "search.py"
        file.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(file)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=environment, **options
        )

    return start


def whole(size):
    """A step that takes no memory worth the name."""


@linux
class TestLargestBatch:
    def test_is_the_largest_that_fits_into_a_real_limit(self, run):
        done = run("""
            def step(batch_size):
                hold_to(68)
                np.ones((batch_size, 2**20))  # 8 MiB a row

            if __name__ == "__main__":
                search = diagnostics.largest_batch(step, within=0)
                print(search.largest, search.too_large, [trial.size for trial in search.trials])
                print(all(trial.peak > 2**20 and trial.where == "host" for trial in search.trials))
                print(search)
            """)
        first, peaks, *table = done.stdout.splitlines()
        assert first == "8 9 [1, 2, 4, 8, 16, 12, 10, 9]", done.stderr
        assert peaks == "True"
        assert [line.split()[0] for line in table[:-1]] == ["1", "2", "4", "8", "9", "10", "12", "16"]
        assert table[-1] == "Batches of 8 fit, batches of 9 do not."
        assert "      9  does not fit" in done.stderr
        assert "72.0 MiB more was requested" in done.stderr

    def test_is_searched_downwards_where_the_first_does_not_fit(self, run):
        done = run("""
            def step(batch_size):
                hold_to(68)
                np.ones((batch_size, 2**20))

            if __name__ == "__main__":
                search = diagnostics.largest_batch(step, start=24, show=False)
                print(search.largest, [trial.size for trial in search.trials])
            """)
        assert done.stdout == "8 [24, 12, 6, 9, 7, 8]\n"
        assert done.stderr == ""

    def test_says_so_where_the_step_leaves_no_memory_to_say_it_with(self, run):
        done = run("""
            def step(batch_size):
                hold_to(24)
                held = []
                for _ in range(batch_size * 2**13):  # 8 MiB a row, in small pieces
                    held.append(bytearray(2**10))

            if __name__ == "__main__":
                search = diagnostics.largest_batch(step, start=1, limit=4)
                print(search.largest)
        """)
        assert (done.stdout.split()[-1:], done.returncode) == (["2"], 0), done.stderr

    def test_counts_a_process_that_the_system_kills(self, run):
        done = run("""
            def step(batch_size):
                if batch_size > 2:
                    os.kill(os.getpid(), signal.SIGKILL)

            if __name__ == "__main__":
                search = diagnostics.largest_batch(step, show=False)
                print(search.largest, search.too_large, search.trials[2].reason)
            """)
        assert done.stdout == "2 3 the process was ended by SIGKILL\n", done.stderr

    def test_is_none_where_no_row_fits(self, run):
        done = run("""
            def step(batch_size):
                raise MemoryError

            if __name__ == "__main__":
                search = diagnostics.largest_batch(step, start=2, show=False)
                print(search.largest, [trial.size for trial in search.trials])
                print(str(search).splitlines()[-1])
            """)
        assert done.stdout == "0 [2, 1]\nNot even a single row fits.\n", done.stderr

    def test_ends_at_the_limit(self, run):
        done = run("""
            def step(batch_size):
                pass

            if __name__ == "__main__":
                search = diagnostics.largest_batch(step, start=4, limit=10, show=False)
                print([trial.size for trial in search.trials], search.too_large)
                print(str(search).splitlines()[-1])
            """)
        assert done.stdout == "[4, 8, 10] None\nBatches of 10 fit, the largest size that was tried.\n", done.stderr

    def test_passes_on_a_failure_that_is_not_for_memory(self, run):
        done = run("""
            def step(batch_size):
                raise KeyError("labels")

            if __name__ == "__main__":
                diagnostics.largest_batch(step, show=False)
            """)
        assert "step(1) failed, but not because of memory: KeyError: 'labels'" in done.stderr
        assert 'raise KeyError("labels")' in done.stderr  # the child's traceback, in the notes

    def test_says_what_a_script_without_a_guard_lacks(self, run):
        done = run("""
            def step(batch_size):
                pass

            diagnostics.largest_batch(step, show=False)
            """)
        assert done.returncode == 1
        assert "which would never end. Put the call under: if __name__ ==" in done.stderr
        assert "The process of step(1) ended by itself (exit code 1)" in done.stderr

    def test_gives_up_a_step_that_takes_too_long(self, run):
        done = run("""
            def step(batch_size):
                time.sleep(60)

            if __name__ == "__main__":
                diagnostics.largest_batch(step, seconds=3, show=False)
            """)
        assert "step(1) took longer than 3 s; largest_batch(seconds=...) allows more." in done.stderr

    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
    def test_leaves_no_process_behind_when_it_is_ended(self, tmp_path, how):
        file, note = tmp_path / "search.py", tmp_path / "pid"
        file.write_text(
            textwrap.dedent(HEAD)
            + textwrap.dedent(f"""
            def step(batch_size):
                with open({str(note)!r}, "w") as file:
                    file.write(str(os.getpid()))
                time.sleep(60)

            if __name__ == "__main__":
                diagnostics.largest_batch(step, show=False)
            """)
        )
        parent = subprocess.Popen([sys.executable, str(file)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (note.exists() and note.read_text()):
            time.sleep(0.05)
        child = int(note.read_text())
        parent.send_signal(how)
        parent.wait(timeout=60)
        while time.monotonic() < deadline and psutil.pid_exists(child):
            if psutil.Process(child).status() == psutil.STATUS_ZOMBIE:  # it has ended, and nobody has asked how
                break
            time.sleep(0.05)
        assert time.monotonic() < deadline


class TestBadInput:
    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda: diagnostics.largest_batch("step"),
                "largest_batch() was given a str as step. It takes a function of one argument, the batch size, "
                "which builds the model and trains it on batches of that size.",
            ),
            (
                lambda: diagnostics.largest_batch(whole, start=0),
                "largest_batch(start=0): expected a whole number of rows, at least 1.",
            ),
            (
                lambda: diagnostics.largest_batch(whole, limit=2.5),
                "largest_batch(limit=2.5): expected a whole number of rows, at least 1.",
            ),
            (
                lambda: diagnostics.largest_batch(whole, start=8, limit=4),
                "largest_batch(start=8, limit=4): start must not be above limit.",
            ),
            (
                lambda: diagnostics.largest_batch(whole, within=-0.1),
                "largest_batch(within=-0.1): expected a number, at least 0.",
            ),
            (
                lambda: diagnostics.largest_batch(whole, seconds=float("nan")),
                "largest_batch(seconds=nan): expected a number, at least 1.",
            ),
        ],
        ids=["step", "start", "limit", "order", "within", "seconds"],
    )
    def test_is_named(self, call, message):
        with pytest.raises(InvalidInput) as raised:
            call()
        assert str(raised.value) == message

    def test_a_function_that_no_other_process_can_import_is_named(self):
        def step(batch_size):
            pass

        with pytest.raises(
            InvalidInput,
            match=r"cannot pass .*step to another process, which can import only functions at the top",
        ):
            diagnostics.largest_batch(step)
        with pytest.raises(InvalidInput, match=r"<lambda> to another process"):
            diagnostics.largest_batch(lambda batch_size: None)

    def test_a_function_of_a_notebook_is_named(self):
        code = "import diagnostics\ndef step(n): pass\ndiagnostics.largest_batch(step)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "cannot pass step to another process" in done.stderr
        assert "or a function in a notebook. Move it to a file and import it." in done.stderr


class TestNext:
    @pytest.mark.parametrize(
        ("fits", "fails", "limit", "within", "size"),
        [
            (8, None, None, 0.1, 16),
            (8, None, 12, 0.1, 12),
            (12, None, 12, 0.1, None),
            (0, 9, None, 0.1, 4),
            (0, 1, None, 0.1, None),
            (8, 16, None, 0.1, 12),
            (100, 110, None, 0.1, None),
            (100, 110, None, 0, 105),
            (7, 8, None, 0, None),
        ],
    )
    def test_doubles_then_halves_the_gap(self, fits, fails, limit, within, size):
        assert _next(fits, fails, limit, within) == size


class TestText:
    def test_is_a_table_smallest_first(self):
        trials = (
            Trial(8, True, 7.04, 812 * MIB),
            Trial(16, False, 8.5, None, reason="the process was ended by SIGKILL"),
            Trial(12, True, 7.5, 3 * 2**30, "GPU"),
        )
        assert str(BatchSearch(12, 16, trials)).splitlines() == [
            "      8  fits            7.0 s   812.0 MiB of the host's memory",
            "     12  fits            7.5 s     3.0 GiB of the GPU's memory",
            "     16  does not fit    8.5 s   the process was ended by SIGKILL",
            "Batches of 12 fit, batches of 16 do not.",
        ]
