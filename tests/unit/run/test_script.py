"""Each script runs twice, plain and by `diagnose run`: what others see of it must be the same."""

import py_compile
import signal
import sys
import textwrap
import zipfile

import pytest

from tests.support.marks import quick
from tests.support.side_by_side import both as both

SEES = """
    import sys, os, __main__
    print(sys.argv, sys.path[0], os.getcwd(), __name__, __file__, __spec__, __package__, __doc__)
    print(list(vars(__main__)), __main__.__dict__ is globals(), __builtins__, __annotations__, __cached__)
    print(type(__loader__), vars(__loader__) if type(__loader__) is not type else '')
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
            print(__file__, 'hooked', kind.__name__, error, trace.tb_lineno, trace.tb_next)
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
    "its attributes at its end": """
        import atexit
        atexit.register(lambda: print('at exit', list(globals()), __import__('sys').modules['__main__']))
        """,
    "no main module at its end": "import sys; del sys.modules['__main__']",
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
    @pytest.mark.parametrize("what", quick(SAME, *list(SAME)[::2]))
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
        assert observed == plain

    @pytest.mark.parametrize("command", [["-m", "project.train"], ["project"], ["project.zip"]], ids=str)
    def test_a_main_of_any_kind_sees_the_same_of_itself(self, both, tmp_path, command):
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / "__init__.py").touch()
        (tmp_path / "project" / "train.py").write_text(textwrap.dedent(SEES))
        with zipfile.ZipFile(tmp_path / "project.zip", "w") as archive:
            archive.writestr("__main__.py", textwrap.dedent(SEES))
        plain, observed = both(SEES, "x", name="project/__main__.py", command=command)
        assert observed == plain
        assert plain[0] == 0

    @pytest.mark.parametrize("path", ["./train.py", "folder/../train.py"])
    def test_its_own_file_is_named_as_it_was_given(self, both, tmp_path, path):
        (tmp_path / "folder").mkdir()
        plain, observed = both(SEES, command=[path])
        assert observed == plain

    def test_compiled_bytecode(self, both, tmp_path):
        (tmp_path / "source.py").write_text("import sys; print(__file__, __loader__.__class__, sys.path[0])")
        py_compile.compile(str(tmp_path / "source.py"), cfile=str(tmp_path / "train.pyc"))
        plain, observed = both("", name="other.py", command=["train.pyc"])
        assert observed == plain
        assert plain[0] == 0

    def test_a_package_that_fails_when_it_is_imported(self, both, tmp_path):
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / "__init__.py").write_text("1 / 0")
        plain, observed = both("", name="project/train.py", command=["-m", "project.train"])
        assert observed == plain

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
