"""`diagnose run` started on the text of a script, in a process of its own."""

import os
import subprocess
import sys
import textwrap

PLAIN = "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__')"
DIAGNOSE = "import sys; from diagnostics.cli.main import main; sys.exit(main())"


def run(folder, text, *options):
    (folder / "train.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-m", "diagnostics", "run", *options, "train.py"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
    )


def run_forked(forks, folder, text, *options):
    (folder / "train.py").write_text(textwrap.dedent(text))
    return forks.run(DIAGNOSE, "diagnose", "run", *options, "train.py", folder=folder, COLUMNS="100")


def run_plain(forks, folder, text):
    (folder / "train.py").write_text(text)
    return forks.run(PLAIN, "train.py", folder=folder)
