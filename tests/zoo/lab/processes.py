"""Programs in processes of their own, for the tests of what several of them share."""

import json
import os
import subprocess
import sys
import textwrap

QUIET = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def start(program: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **QUIET, **environment},
        stdin=subprocess.PIPE,  # an inherited one may be at its end, and a program that waits on it would go on
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(program: str, **environment: str) -> dict:
    """What the program printed as JSON; it must end well."""
    process = start(program, **environment)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])
