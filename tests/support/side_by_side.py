"""Runs a script twice, plain and by `diagnose run`: what others see of it must be the same."""

import os
import re
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


def _anywhere(text):
    """Leave out addresses in memory."""
    return re.sub("0x[0-9a-f]+", "0x", text)


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
        return (
            (plain.returncode, _anywhere(plain.stdout), _anywhere(plain.stderr)),
            (observed.returncode, _anywhere(observed.stdout), _anywhere(own(observed.stderr))),
        )

    return both
