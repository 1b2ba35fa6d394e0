"""What the last verification saw of each script, so that the book need not run it once more.

A record is one JSON file under `.verified/`. It counts while all is as it was that decides what a script says: the
script, the lab that it stands on, the versions of the frameworks, the seed, the model, the data, the threads.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from bugs.zoo.keeper.manifest import Exhibit

LAB = Path(__file__).parents[2] / "lab"
PACKAGES = (
    *("accelerate", "datasets", "keras", "numpy", "peft", "scikit-learn", "tensorflow", "torch"),
    "transformers",
)
VARIABLES = (
    *("ZOO_SEED", "ZOO_MODEL", "ZOO_DATASET", "ZOO_DEVICE"),
    *("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"),
)
UNSET = {"ZOO_SEED": "0"}


class Said(NamedTuple):
    """What a script said, and how it ended."""

    returncode: int
    stdout: str
    stderr: str


def keep(exhibit: Exhibit, script: Path, environment: Mapping[str, str], said: Said) -> None:
    """Write down what a script said in this environment, instead of what it said before."""
    file = _file(exhibit, script, environment)
    try:
        file.parent.mkdir(exist_ok=True)
        for older in file.parent.glob(f"{file.name.rpartition('.')[0].rpartition('.')[0]}.*"):
            older.unlink(missing_ok=True)
        unfinished = file.with_suffix(".part")
        unfinished.write_text(json.dumps(said._asdict()), "utf-8")
        unfinished.replace(file)
    except OSError:  # a clone that may only be read: the book runs the script itself
        return


def kept(exhibit: Exhibit, script: Path) -> Said | None:
    """Return what the script said when it was verified as it is now, in an environment like this; or None."""
    try:
        return Said(**json.loads(_file(exhibit, script, os.environ).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _file(exhibit: Exhibit, script: Path, environment: Mapping[str, str]) -> Path:
    """Name the record of exactly this."""
    settings = [environment.get(name, UNSET.get(name, "")) for name in VARIABLES]
    digest = hashlib.sha256(json.dumps([settings, platform.python_version(), _versions()]).encode())
    for file in (script, *sorted(LAB.rglob("*.py"))):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    name = "solution" if script == exhibit.solution else "broken"
    return exhibit.root / ".verified" / f"{exhibit.folder}.{name}.{digest.hexdigest()[:16]}.json"


def _versions() -> list[str]:
    found = []
    for name in PACKAGES:
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append("")
    return found
