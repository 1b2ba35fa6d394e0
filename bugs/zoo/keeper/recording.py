"""`nox -s record-gpu`: runs the exhibits that need a GPU on a real one, and writes down what happened.

Each exhibit gets one file, `bugs/NN_name/on_a_card.json`, which the book shows beside the simulation:

    {"version": 1, "exhibit": "03", "date": "2026-11-21",
     "card": {"name": …, "memory": bytes, "driver": …, "torch": …, "cuda": …},
     "said": {command: the end of what it said},
     "steps": {script: a `measurement.Step`},
     "memory": {script: {"allocated_peak": bytes, "reserved_peak": bytes}}}
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from bugs.zoo.keeper.last_words import short_path
from bugs.zoo.keeper.measurement import Step

NAME = "on_a_card.json"
TIMEOUT_S = 1800
LINES = 40  # of what a script said last: the kernel's assertions, and the traceback

Record = dict[str, Any]


@dataclass(frozen=True)
class Card:
    """What there is to say of a GPU and of what drives it. `memory` is in bytes."""

    name: str
    memory: int
    driver: str
    torch: str
    cuda: str


def find_card() -> Card | None:
    """Return the GPU that PyTorch would take, None if there is none."""
    import torch

    if not torch.cuda.is_available():
        return None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    properties = torch.cuda.get_device_properties(0)
    return Card(properties.name, properties.total_memory, driver, torch.__version__, str(torch.version.cuda))


def last_lines(exhibit: Exhibit, **environment: str) -> str:
    """Run the broken script as a terminal would, and return the end of its standard error, with short paths."""
    done = subprocess.run(
        [sys.executable, exhibit.script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=os.environ | environment,
    )
    lines = [line for line in done.stderr.splitlines() if line.strip() and "\r" not in line and "%|" not in line]
    return re.sub(
        r'File "(.+?)"', lambda file: f'File "{short_path(file[1], exhibit.root)}"', "\n".join(lines[-LINES:])
    )


def measure(what: str, script: Path, **environment: str) -> dict[str, Any]:
    """Measure a script in a process of its own; see `measurement`.

    Args:
        what: "step" or "memory".
        script: a broken script, or its twin.
        environment: of that process, beside this one's.

    Raises:
        RuntimeError: it did not come to its end; the message holds what it said.
    """
    command = [sys.executable, "-m", "bugs.zoo.keeper.measurement", what, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=os.environ | environment)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(command[1:])} ended with exit code {done.returncode}:\n{done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def measured_step(script: Path, **environment: str) -> Step:
    """Return one training step of the script, measured in a process of its own; see `measurement.measure_step`."""
    return Step.of(measure("step", script, **environment))


def record_error(exhibit: Exhibit, device: str = "cuda") -> Record:
    """What the error in the wrong place says, with blocking launches too, and the clocks of both twins."""
    command = f"python bugs/{exhibit.folder}/train.py"
    return {
        "said": {
            command: last_lines(exhibit, ZOO_DEVICE=device),
            f"CUDA_LAUNCH_BLOCKING=1 {command}": last_lines(exhibit, ZOO_DEVICE=device, CUDA_LAUNCH_BLOCKING="1"),
        },
        "steps": {
            short_path(script, exhibit.root): asdict(measured_step(script, ZOO_DEVICE=device))
            for script in (exhibit.script, exhibit.solution)
        },
        "memory": {},
    }


def record_memory(exhibit: Exhibit) -> Record:
    """What the batch that does not fit says, and how much memory it and its fixed script took."""
    said, memory = {}, {}
    for script in (exhibit.script, exhibit.solution):
        name = short_path(script, exhibit.root)
        memory[name] = measure("memory", script)
        if (exception := memory[name].pop("exception")) is not None:
            said[f"python {name}"] = exception
    return {"said": said, "steps": {}, "memory": memory}


RECORDED: dict[str, Callable[[Exhibit], Record]] = {"03": record_error, "07": record_memory}


def write(exhibit: Exhibit, card: Card, record: Record, date: str) -> Path:
    """Write the exhibit's file, in the place of any older one, and return it."""
    path = exhibit.script.parent / NAME
    whole = {"version": 1, "exhibit": exhibit.id, "date": date, "card": asdict(card), **record}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def read(exhibit: Exhibit) -> Record | None:
    """Return what was recorded, None if nothing was.

    Raises:
        ValueError: the file is of another version than this program writes.
    """
    path = exhibit.script.parent / NAME
    if not path.is_file():
        return None
    record: Record = json.loads(path.read_text("utf-8"))
    if record.get("version") != 1:
        raise ValueError(f"{path}: version {record.get('version')}, expected 1; run nox -s record-gpu again")
    return record


def main() -> int:
    """Record every exhibit that needs a GPU; return 0, or 1 where there is none."""
    card = find_card()
    if card is None:
        print(
            "record-gpu: PyTorch finds no CUDA GPU here (torch.cuda.is_available() is False), so there is "
            "nothing to record. Run it on a machine with a GPU.",
            file=sys.stderr,
        )
        return 1
    root = Path(__file__).resolve().parents[3]
    exhibits = load_catalogue(root)
    for id, record in RECORDED.items():
        if id in exhibits:
            print(f"exhibit {id} on {card.name} …", flush=True)
            path = write(exhibits[id], card, record(exhibits[id]), datetime.date.today().isoformat())
            print(f"wrote {short_path(path, root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
