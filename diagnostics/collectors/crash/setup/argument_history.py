"""Looks up in which release a library removed an argument, or began to take it."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash.setup import ArgumentChange

_FILE = Path(__file__).with_name("argument_history.toml")
_REFUSED = re.compile(
    r"(?<![\w.])(?:(?P<owner>\w{1,60})\.)?(?P<call>\w{1,60})\(\)"
    r" got an unexpected keyword argument '(?P<name>\w{1,60})'"
)
_CALLED = re.compile(r"\b(\w{1,60})\(")
_MENTIONS = {
    "pytorch-lightning": re.compile(r"\b(?:pytorch[_-])?lightning\b|\bpl\.", re.IGNORECASE),
    "transformers": re.compile(r"\btransformers\b"),
    "trl": re.compile(r"\btrl\b"),
}
"""Words in or beside the frames that show whose class it is: users call their own classes Trainer, too."""
_OF_ONE_LIBRARY = re.compile(r"(?:Seq2Seq)?TrainingArguments|(?:SFT|DPO|PPO|GRPO)(?:Trainer|Config)")


def argument_change(crash: Crash) -> ArgumentChange | None:
    """Return what is known of an argument that a call refuses; None if nothing is."""
    found = _REFUSED.search(crash.facts.message)
    if found is None:
        return None
    frames = crash.facts.frames
    own = next((frame.code or "" for frame in reversed(frames) if frame.yours), crash.log)
    around = "\n".join([crash.log, own, *(frame.file for frame in frames)])
    inner = "" if not frames or frames[-1].yours else frames[-1].file
    changes = [
        change
        for change in _changes()
        if found["name"] == change.name
        and _is_call(change, found["owner"], found["call"], own, inner)
        and (_is_of_one_library(change) or _MENTIONS[change.package].search(around))
    ]
    return changes[0] if len(changes) == 1 else None


def _is_of_one_library(change: ArgumentChange) -> bool:
    if change.call == "Trainer" and change.package == "pytorch-lightning":
        return change.kind == "removed"  # gpus, progress_bar_refresh_rate and others are Lightning's words
    return _OF_ONE_LIBRARY.fullmatch(change.call) is not None


def _is_call(change: ArgumentChange, owner: str | None, call: str, own: str, inner: str) -> bool:
    """Return whether a call of the history is the one in the message, which names no class before Python 3.10.

    Then the user's line shows it, or the frame of the library that passed the arguments on.
    """
    owner_known, _, method = change.call.partition(".")
    if (method or "__init__") != call:
        return False
    if owner:
        return owner == owner_known
    return method != "" or owner_known in _CALLED.findall(own) or bool(_MENTIONS[change.package].search(inner))


@functools.cache
def _changes() -> tuple[ArgumentChange, ...]:
    releases: list[dict[str, Any]] = tomllib.loads(_FILE.read_text("utf-8"))["releases"]
    return tuple(
        ArgumentChange(
            release["package"],
            release["call"],
            name,
            kind,
            release["version"],
            release["before"],
            release.get("instead", {}).get(name),
        )
        for release in releases
        for kind in ("removed", "added")
        for name in release.get(kind, ())
    )
