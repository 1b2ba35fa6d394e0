"""The tests beside this one need no framework."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FRAMEWORKS = ("torch", "tensorflow", "keras", "transformers", "datasets")
COLLECT = f"""
import sys
import pytest
code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", sys.argv[1]])
print("imported:", [name for name in {FRAMEWORKS} if name in sys.modules], "exit code:", int(code))
"""


def test_collecting_the_unit_tests_imports_no_framework():
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, str(HERE)],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines()[-1] == "imported: [] exit code: 0", done.stdout + done.stderr
