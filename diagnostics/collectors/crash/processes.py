"""Recognises failures outside of the training code: the installation, worker processes, launchers, ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.processes import (
    CollectiveTimeoutCrash,
    LauncherTail,
    WaitingRank,
)

from .frames import Crash, Recogniser
from .messages.table import Family, Found

WATCHDOG = Family("watchdog")
_PICKLING = Family("pickling")
LAUNCHERS = Family("launchers")
_RENDEZVOUS = Family("rendezvous")
_GLOO = Family("gloo")

_SIGNALS = {"Segmentation fault": 11, "Aborted": 6, "Bus error": 7}
_PROCESSES = ("multiprocessing", "torch/utils/data/dataloader.py", "popen_", "spawn.py")
_STARTS = ("multiprocessing/reduction.py", "popen_spawn_win32.py")  # in the parent of a process


def _worker(crash: Crash) -> KnownFailure | None:
    facts = crash.facts
    found = _PICKLING.search(facts.message) if _runs_in(facts, _PROCESSES) or not facts.frames else None
    if found is None:
        starts = facts.exception == "BrokenPipeError" and _runs_in(facts, _STARTS)
        return spawned(facts.message) if starts else None
    if found.kind == "script" and not facts.frames:
        return None  # a checkpoint that holds a whole model says the same when it is loaded
    if found.kind == "child":
        # A child that was spawned says no more than EOFError; why its parent could not send it is in the log.
        if facts.exception != "EOFError":
            return None
        found = _PICKLING.search(crash.log) or found
    cause, fixes = _unsent(found.get("what"), facts)
    return KnownFailure("worker-failure", cause, fixes, found.text, "pickle", found.get("what"))


def _unsent(what: str | None, crash: CrashFacts) -> tuple[str, tuple[str, ...]]:
    """Say what cannot be pickled, and where it belongs instead."""
    if what is not None and not crash.frames:  # the message alone does not show which code pickles
        return (
            f"{what} cannot be pickled. Spawned processes (Windows, macOS, notebooks) receive a pickled "
            "copy of the dataset; copy.deepcopy and functions that save whole objects use pickle too.",
            (
                "in a dataset, open files, connections and locks in __getitem__ or worker_init_fn, not in "
                "__init__, and define functions at module level",
                "DataLoader(..., num_workers=0)",
                "if the code copies or saves a whole model, use its weights instead (state_dict), and do not keep "
                "loggers, imported Python modules or locks as attributes of the model",
            ),
        )
    named = "An object in the dataset" if what is None else what
    hidden = (
        " The traceback of the parent process, above the child's EOFError, names the object."
        if what is None
        else ""
    )
    return (
        f"{named} cannot be pickled, but a spawned worker process receives a pickled copy of the dataset.{hidden}",
        (
            "define the functions at module level instead of using lambdas or local functions",
            "open files, connections and locks in __getitem__ or worker_init_fn, not in __init__",
            "workers=1 and use_multiprocessing=False, in fit or (Keras 3) in the Sequence's own __init__"
            if any(re.search(r"(?:^|/)keras/", frame.file.replace("\\", "/")) for frame in crash.frames)
            else "DataLoader(..., num_workers=0)",
        ),
    )


def spawned(said: str) -> KnownFailure:
    """Report a process that ended while it imported the script again."""
    return KnownFailure(
        "worker-failure",
        "A worker process ended during startup. Where processes are spawned (Windows, macOS), a worker imports "
        "the script again and receives a pickled copy of the dataset. The worker's own error is elsewhere in the "
        "output.",
        (
            'put the training code under if __name__ == "__main__":',
            "define the dataset's class in its own module, not in a notebook cell",
            "use DataLoader(..., num_workers=0), which raises the worker's error in the main process",
        ),
        said,
        "spawned",
    )


def _runs_in(crash: CrashFacts, files: tuple[str, ...]) -> bool:
    return any(part in frame.file.replace("\\", "/") for frame in crash.frames for part in files)


def is_spawned(frames: Sequence[FrameFacts]) -> bool:
    """Whether a traceback is of a process that imports the script again, because it was spawned."""
    files = [frame.file.replace("\\", "/") for frame in frames]
    return any(file.endswith("multiprocessing/spawn.py") for file in files)


_COMMAND = re.compile(r"Command (?P<words>.*) returned non-zero exit status (?P<code>\d+)", re.DOTALL)


def _launcher(crash: Crash) -> LauncherTail | None:
    facts = crash.facts
    found = LAUNCHERS.search(f"{facts.exception}: {facts.message}")
    if found is None:
        return _launcher_by_frames(facts)
    if found.kind == "torchrun":
        text = f"{facts.message}\n{crash.log}"
        text = text[max(text.find("Root Cause (first"), 0) :]  # the others were stopped by the launcher
        rank = re.search(r"^[ \t]*rank[ \t]*: (\d+)", text, re.MULTILINE)
        code = re.search(r"exitcode\s*: (-?\d+)", text)
        return LauncherTail(found.kind, rank and int(rank[1]), code and int(code[1]))
    if found.kind == "accelerate" and not any("accelerate" in frame.file for frame in facts.frames):
        return _launcher_by_frames(facts)
    ended = _number(found, "code")
    if (number := _number(found, "number")) is not None:
        ended = -number
    elif (name := found.get("signal")) is not None:
        ended = -_SIGNALS[name]
    return LauncherTail(found.kind, _number(found, "rank"), ended)


def _launcher_by_frames(facts: CrashFacts) -> LauncherTail | None:
    """Recognise a launcher's report without the launcher's frames, or with its last line cut off."""
    found = _COMMAND.match(facts.message.strip()) if facts.exception == "CalledProcessError" else None
    own = any(frame.yours for frame in facts.frames)
    if found is not None and "python" in found["words"] and ".py" in found["words"] and not own:
        return LauncherTail("the launcher", None, int(found["code"]))
    cut_off = facts.exception in ("", "errors") and facts.frames
    return LauncherTail("torchrun") if cut_off and "ChildFailedError" in (facts.frames[-1].code or "") else None


def _number(found: Found, group: str) -> int | None:
    held = found.get(group)
    return None if held is None else int(held)


_LOGGED = re.compile(r"(OpType|SeqNum|NumelIn|Timeout\(ms\))=(\w+)")  # of a collective, by NCCL's watchdog


def _logged(found: Found) -> dict[str, str]:
    return dict(reversed(_LOGGED.findall(found.text)))  # the first of each name counts


def _collective_timeout(crash: Crash) -> CollectiveTimeoutCrash | None:
    message = crash.facts.message
    if found := _RENDEZVOUS.search(message):
        seconds = None if (said := found.get("seconds")) is None else float(said)
        return CollectiveTimeoutCrash(seconds=seconds, joined=(int(found["came"]), int(found["of"])))
    if found := _GLOO.search(message):
        return CollectiveTimeoutCrash(seconds=int(found["ms"]) / 1000)
    if found := WATCHDOG.search(message):
        logged = _logged(found)
        limit = logged.get("Timeout(ms)")
        return CollectiveTimeoutCrash(
            rank=_number(found, "rank"),
            operation=logged.get("OpType"),
            number=int(logged["SeqNum"]) if "SeqNum" in logged else None,
            seconds=None if limit is None else int(limit) / 1000,
            waiting=_waiting_ranks(crash.log),
        )
    return None


def _waiting_ranks(log: str) -> tuple[WaitingRank, ...]:
    """Read the watchdogs' messages of all ranks: the first of each, because later ones follow from it.

    Of several process groups those of the first one are read: each counts its collectives by itself.
    """
    first: dict[int, WaitingRank] = {}
    groups: list[str] = []
    for found in WATCHDOG.each(log):
        group = re.match(r"\[PG (.{0,80}?)Rank \d", found.text)
        groups.append("" if group is None else group[1])
        if groups[-1] != groups[0]:
            continue
        said, rank = _logged(found), _number(found, "rank")
        if rank is not None and {"OpType", "SeqNum"} <= set(said):
            size = int(said["NumelIn"]) if "NumelIn" in said else None
            first.setdefault(rank, WaitingRank(rank, said["OpType"], int(said["SeqNum"]), size))
    return tuple(first[rank] for rank in sorted(first))


RECOGNISERS: tuple[Recogniser, ...] = (
    _worker,
    _collective_timeout,
    _launcher,
)
