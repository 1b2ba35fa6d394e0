"""How a script ends under `diagnose run`: threads, exit functions and signals as under `python`."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support.marks import quick
from tests.support.side_by_side import both as both

SAME = {
    "an executor that was not shut down": """
        import time
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(2)
        for n in range(4):
            pool.submit(lambda n=n: (time.sleep(0.1 + 0.1 * n), print('done', n)))
        print('main done')
        """,
    "exit functions of threading and of atexit, and a thread between them": """
        import atexit, threading, time
        atexit.register(print, 'atexit')
        threading._register_atexit(print, 'first registered')
        threading._register_atexit(print, 'second registered')
        threading.Thread(target=lambda: (time.sleep(0.4), print('thread'))).start()
        print('main done')
        """,
    "the main thread while others are waited for": """
        import threading, time
        def work():
            while threading.main_thread().is_alive():
                time.sleep(0.01)
            print('the main thread is over')
        threading.Thread(target=work).start()
        """,
    "threads that are waited for after an exception": """
        import threading, time
        threading.Thread(target=lambda: (time.sleep(0.3), print('thread'))).start()
        raise ValueError('first')
        """,
    "threads that are waited for after sys.exit": """
        import sys, threading, time
        threading.Thread(target=lambda: (time.sleep(0.3), print('thread'))).start()
        sys.exit(3)
        """,
    "an exit function of threading that fails": """
        import atexit, threading
        def fail():
            raise ValueError('at the end')
        threading._register_atexit(fail)
        atexit.register(print, 'atexit')
        """,
    "an exit handler that fails": """
        import atexit
        def fail():
            print('failing')
            sys.stderr = None  # the traceback comes after the report
            raise ValueError('at the end')
        import sys
        atexit.register(fail)
        """,
    "an exit handler that ends it": "import atexit, os\natexit.register(os._exit, 7)",
    "a daemon thread that is left behind": """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print('main done')
        """,
    "sys.exit in a thread": """
        import sys, threading
        thread = threading.Thread(target=sys.exit, args=(5,))
        thread.start()
        thread.join()
        """,
    "an exception in a thread": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    "the last exception": """
        import atexit, sys
        atexit.register(lambda: print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))
        raise KeyError('x')
        """,
    "a file that is written only when it is collected": """
        file = open('out.txt', 'w')
        file.write('x' * 10)
        """,
}


@pytest.mark.parametrize("what", quick(SAME, *list(SAME)[::2]))
def test_ends_as_under_python(both, what):
    plain, observed = both(SAME[what])
    if what != "an exit function of threading that fails":  # the frames within threading depend on the caller's
        assert observed == plain
        return
    assert observed[:2] == plain[:2] == (0, "atexit\n")
    assert observed[2].splitlines() == [line for line in plain[2].splitlines() if "^" not in line]


def test_what_a_collected_file_held_is_written(both, tmp_path):
    both(SAME["a file that is written only when it is collected"])
    assert (tmp_path / "out.txt").read_text() == "x" * 10


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
class TestSignals:
    HANDLERS = """
        import signal
        print(repr(signal.getsignal(signal.SIGTERM)), signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
        before = signal.signal(signal.SIGTERM, print)
        print(repr(before), signal.getsignal(signal.SIGTERM))
        print(repr(signal.signal(signal.SIGTERM, before)), repr(signal.getsignal(signal.SIGTERM)))
        print([repr(signal.getsignal(n)) for n in signal.valid_signals()])
        """

    def test_a_script_sees_the_handlers_that_it_has_under_python(self, both):
        plain, observed = both(self.HANDLERS)
        assert observed == plain
        assert plain[1].startswith("<Handlers.SIG_DFL: 0> True")

    def test_sigterm_ends_a_script_that_waits_in_c(self, tmp_path):
        (tmp_path / "train.py").write_text(
            "import ctypes, threading\n"
            "lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)\n"
            "lock(mutex)\nprint('waits', flush=True)\nlock(mutex)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "diagnostics", "run", "train.py"], cwd=tmp_path, stdout=subprocess.PIPE
        )
        try:
            assert process.stdout.readline() == b"waits\n"
            process.terminate()
            assert process.wait(30) == -signal.SIGTERM
        finally:
            process.kill()
            process.stdout.close()

    @pytest.mark.parametrize(
        "text",
        [
            "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time; time.sleep(60)",
            "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "os.kill(os.getpid(), signal.SIGTERM)\nimport time; time.sleep(60)",
            "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(60)",
            "import atexit\natexit.register(print, 'at exit')\nraise KeyboardInterrupt",
            "import sys\nsys.excepthook = lambda *_: sys.exit(9)\nraise KeyboardInterrupt",
            "try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    raise SystemExit(4)",
            "import os\nif os.fork() == 0:\n    raise KeyboardInterrupt\nprint(os.wait()[1])",
        ],
        ids=["SIGTERM", "own handler", "SIGINT", "raised", "hook that exits", "caught", "in a forked child"],
    )
    def test_it_ends_by_the_signal_that_ends_it(self, both, text):
        plain, observed = both(text)
        assert observed == plain

    def test_a_launcher_that_ends_the_other_ranks_does_not_cost_the_report_of_a_failure(self, tmp_path):
        (tmp_path / "train.py").write_text(
            textwrap.dedent("""
                import os, signal

                class Lost(RuntimeError):
                    asked = 0

                    def __str__(self):
                        self.asked += 1
                        if self.asked > 1:  # Python has printed it; now the report is being written
                            os.kill(os.getpid(), signal.SIGTERM)
                        return "expected scalar type Float but found Double"

                raise Lost
                """)
        )
        ended = subprocess.run(
            [sys.executable, "-m", "diagnostics", "run", "train.py"],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert "error: dtype-mismatch" in ended.stderr
        assert ended.returncode == -signal.SIGTERM

    def test_an_interrupt_while_threads_are_waited_for_costs_no_exit_code(self, tmp_path):
        (tmp_path / "train.py").write_text(
            textwrap.dedent("""
                import atexit, threading, time
                atexit.register(print, 'at exit')
                threading.Thread(target=time.sleep, args=(3,)).start()
                print('main done', flush=True)
                """)
        )
        ends = []
        for launcher in ([], ["-m", "diagnostics", "run"]):
            process = subprocess.Popen(
                [sys.executable, *launcher, "train.py"],
                cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )  # fmt: skip
            assert process.stdout.readline() == "main done\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
            ends.append((process.returncode, output, "Exception ignored in: <module 'threading'" in errors))
        assert ends[0] == ends[1] == (0, "at exit\n", True)

    def test_a_lock_that_the_script_holds_does_not_keep_it_from_ending(self, tmp_path):
        """A report that never comes to its end gives way to the signal."""
        (tmp_path / "train.py").write_text(
            textwrap.dedent("""
                import os, signal, threading, time
                import diagnostics.run.termination, diagnostics.run.session
                diagnostics.run.termination.GRACE_S = 0.5
                diagnostics.run.session.RunSession._report = lambda *_: threading.Event().wait()
                os.kill(os.getpid(), signal.SIGTERM)
                """)
        )
        ended = subprocess.run(
            [sys.executable, "-m", "diagnostics", "run", "train.py"],
            cwd=tmp_path, env=dict(os.environ), capture_output=True, timeout=60,
        )  # fmt: skip
        assert ended.returncode == -signal.SIGTERM
