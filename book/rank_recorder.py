"""Runs a script under `diagnose run` and records what each rank does that it spawns.

`main([FOLDER, SCRIPT])` leaves in FOLDER `report.json` and, for each rank, `rank0.jsonl`: a line
`[name, "begin" or "end", seconds since the epoch, value]` for the beginning and the end of each forward pass of
the wrapped model (value: a digest of the batch), each backward pass (value: the loss) and each collective. A line
is written at once, so that a rank that is killed leaves where it was.
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diagnostics.cli.main import main as diagnose
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.run.ranks.spawn_hook import SpawnHook

COLLECTIVES = ("all_gather", "all_reduce", "barrier", "broadcast")


def main(arguments: list[str]) -> int:
    """Run the script, and return its exit code."""
    folder, script = (Path(argument).resolve() for argument in arguments)
    hook = SpawnHook(lambda world: str(folder), begin)
    code = diagnose(["run", "--output", str(folder / "report.json"), "--fail-on", "never", "--quiet", str(script)])
    hook.close()
    return code


def begin(number: int, folder: str) -> None:
    """Record this process as a rank, until its end."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    file = open(Path(folder) / f"rank{number}.jsonl", "w", encoding="utf-8", buffering=1)  # noqa: SIM115
    patches = Patches()

    def note(name: str, what: str, value: Any = None) -> None:
        file.write(json.dumps([name, what, time.time(), value]) + "\n")

    def recording(name: str, value_of: Callable[..., Any], original: Any) -> Any:
        def replacement(*arguments: Any, **options: Any) -> Any:
            if is_own_run():
                return original(*arguments, **options)
            note(name, "begin", value_of(*arguments))
            result = original(*arguments, **options)
            note(name, "end")  # what an exception ends stays open
            return result

        return replacement

    def record(owner: Any, function: str, name: str, value_of: Callable[..., Any] = lambda *_: None) -> None:
        patches.around(owner, function, functools.partial(recording, name, value_of))

    record(DistributedDataParallel, "forward", "forward", _digest)
    record(torch.Tensor, "backward", "backward", lambda loss, *_: float(loss.detach()))
    for collective in COLLECTIVES:
        record(dist, collective, collective)


def _digest(_: Any, batch: Any, *__: Any) -> str:
    return hashlib.blake2b(batch.detach().numpy().tobytes(), digest_size=8).hexdigest()
