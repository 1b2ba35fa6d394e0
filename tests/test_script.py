"""Each script runs twice, plain and by `diagnose run`: what others see of it must be the same."""

import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

RULE_OFF = {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}


def run(command, folder, **options):
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **RULE_OFF, **options.pop("env", {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def own(errors):
    """Leave out of standard error what `diagnose` adds at its end: the report, from the line of its title on."""
    return re.split(r"\n?^(?:ran |.* does not compile, and was not run)", errors, maxsplit=1, flags=re.M)[0]


@pytest.fixture
def both(tmp_path):
    """Run a program plain and by `diagnose run`; return the two endings, the report cut off."""

    def both(text, *arguments, name="train.py", command=None, env=None):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        command = command or [name]
        plain = run([*command, *arguments], tmp_path, env=env or {})
        observed = run(["-m", "diagnostics", "run", *command, *arguments], tmp_path, env=env or {})
        assert "diagnostics" not in own(observed.stderr), observed.stderr
        return (
            (plain.returncode, plain.stdout, plain.stderr),
            (observed.returncode, observed.stdout, own(observed.stderr)),
        )

    return both


SEES = """
    import sys, os, __main__
    print(sys.argv, sys.path[0], os.getcwd(), __name__, __file__, __spec__, __package__, __doc__)
    print(sorted(set(vars(__main__)) - {'sys', 'os', '__main__'}), __main__.__dict__ is globals())
    print([name for name in ('torch', 'tensorflow', 'keras', 'transformers') if name in sys.modules])
    """

SAME = {
    "what a script sees of itself": SEES,
    "a docstring and a future import": """
        'Trains.'
        from __future__ import annotations
        x: Missing = 1
        print(__doc__)
        """,
    "sys.exit with a number": "import sys; sys.exit(3)",
    "sys.exit with nothing": "import sys; print(1); sys.exit()",
    "sys.exit with a text": "import sys; print('out'); sys.exit('cannot go on')",
    "sys.exit with a large number": "import sys; sys.exit(256 + 7)",
    "an exception": "def main():\n    raise ValueError('no such thing')\nmain()",
    "a chain of exceptions": """
        def main():
            try:
                {}['x']
            except KeyError as error:
                raise ValueError('wrapped') from error
        main()
        """,
    "an exception while another is handled": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][1]",
    "an exception group": "raise ExceptionGroup('two', [ValueError(1), TypeError(2)])",
    "a syntax error": "x = 1\nif x\n    print(x)\n",
    "its own hook for exceptions": """
        import sys
        def hook(kind, error, trace):
            print('hooked', kind.__name__, error, trace.tb_lineno, trace.tb_next)
        sys.excepthook = hook
        raise RuntimeError('x')
        """,
    "a hook that exits": "import sys\nsys.excepthook = lambda *_: sys.exit(9)\nraise RuntimeError('x')",
    "a hook that fails": """
        import sys
        def hook(*_):
            raise KeyError('y')
        sys.excepthook = hook
        raise RuntimeError('x')
        """,
    "exit handlers, after all else": """
        import atexit, sys
        atexit.register(print, 'at exit')
        print('first')
        """,
    "a thread that outlives the main one": """
        import threading, time
        def work():
            time.sleep(0.3)
            print('work done')
        threading.Thread(target=work).start()
        print('main done')
        """,
    "many lines": "for i in range(200_000):\n    print(i)",
    "lines without a last end": "import sys\nsys.stdout.write('no newline')\nsys.stderr.write('nor here\\n')",
    "pickled objects of its own": """
        import pickle
        class Net: pass
        print(type(pickle.loads(pickle.dumps(Net()))) is Net, Net.__module__)
        """,
    "children by fork": """
        import multiprocessing
        def work(n): return n * n
        if __name__ == '__main__':
            with multiprocessing.get_context('fork').Pool(2) as pool:
                print(pool.map(work, range(5)))
        """,
    "children by spawn": """
        import multiprocessing
        def work(n): return n * n
        if __name__ == '__main__':
            with multiprocessing.get_context('spawn').Pool(1) as pool:
                print(pool.map(work, range(5)))
        """,
    "a fork by hand": """
        import os, sys
        print('before', flush=True)
        if os.fork() == 0:
            sys.exit(5)
        print('child ended with', os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    "a fork by hand that fails": """
        import os
        if os.fork() == 0:
            raise ValueError('in the child')
        print('child ended with', os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    "an end without ceremony": "import os\nprint('x', flush=True)\nos._exit(4)",
    "signals as they were": "import signal\nprint(signal.getsignal(signal.SIGINT))",
    "recursion without end": "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')",
}


class TestScript:
    @pytest.mark.parametrize("what", SAME)
    def test_is_the_same_as_under_python(self, both, what):
        plain, observed = both(SAME[what])
        assert observed == plain

    def test_gets_its_arguments_though_they_look_like_those_of_diagnose(self, both):
        plain, observed = both("import sys; print(sys.argv)", "--format", "json", "-m", "x", "--", "--max-steps=1")
        assert observed == plain
        assert plain[1] == "['train.py', '--format', 'json', '-m', 'x', '--', '--max-steps=1']\n"

    def test_its_folder_is_searched_first(self, both, tmp_path):
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / "report.py").write_text("NAME = 'mine'")
        plain, observed = both("import report; print(report.NAME)", name="project/train.py")
        assert observed == plain == (0, "mine\n", "")

    def test_python_may_be_told_not_to_search_it(self, both):
        plain, observed = both("import sys; print(sys.path[0])", env={"PYTHONSAFEPATH": "1"})
        assert observed == plain

    def test_a_module_with_relative_imports(self, both, tmp_path):
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / "__init__.py").touch()
        (tmp_path / "project" / "data.py").write_text("ROWS = 3")
        text = """
            import sys
            from .data import ROWS
            print(ROWS, __package__, __name__, __spec__.name, __file__, sys.argv, sys.path[0])
            ROWS.missing
            """
        plain, observed = both(text, "--epochs", "1", name="project/train.py", command=["-m", "project.train"])
        assert observed[:2] == plain[:2]
        assert observed[2].splitlines()[-2:] == ["    ROWS.missing", plain[2].splitlines()[-1]]

    def test_a_package_runs_its_main(self, both):
        plain, observed = both(
            "print('main of the package')", name="project/__main__.py", command=["-m", "project"]
        )
        assert observed == plain == (0, "main of the package\n", "")

    def test_a_folder_runs_its_main(self, both):
        plain, observed = both("import sys; print(sys.path[0])", name="project/__main__.py", command=["project"])
        assert observed == plain

    @pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_a_child_that_is_ended_by_a_signal_ends_by_it(self, both, number):
        plain, observed = both(f"""
            import multiprocessing, os, time
            child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))
            child.start()
            os.kill(child.pid, {int(number)})
            child.join()
            print(child.exitcode)
            """)
        assert observed == plain == (0, f"{-number}\n", "")
