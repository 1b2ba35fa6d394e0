"""Ranks meet at a file of their own, on the loopback interface, and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ASK = "import os; from bugs import lab; print(lab.meeting_point(), os.environ['GLOO_SOCKET_IFNAME'])"


def test_its_folder_goes_with_the_process(tmp_path: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, env={"TMPDIR": str(tmp_path)}, check=True
    )
    place, interface = asked.stdout.split()
    assert place.startswith(f"file://{tmp_path}/bug-zoo-ranks-")
    assert interface == ("lo0" if sys.platform == "darwin" else "lo")
    assert list(tmp_path.iterdir()) == []
