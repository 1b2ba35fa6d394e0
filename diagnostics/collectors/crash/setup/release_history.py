"""Looks up in which release a library removed an argument or a name, or introduced it."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash.setup import ReleaseChange

_FILE = Path(__file__).with_name("release_history.toml")
_REFUSED = re.compile(
    r"(?<![\w.])(?:(?P<owner>\w{1,60})\.)?(?P<call>\w{1,60})\(\)"
    r" got an unexpected keyword argument '(?P<name>\w{1,60})'"
)
_CALLED = re.compile(r"\b(\w{1,60})\(")
_MENTIONS = {
    "pytorch-lightning": re.compile(r"\b(?:pytorch[_-])?lightning\b|\bpl\.", re.IGNORECASE),
    "transformers": re.compile(r"\btransformers\b"),
    "trl": re.compile(r"\btrl\b"),
    "scikit-learn": re.compile(r"\bsklearn\b|scikit-learn"),
    "tensorflow": re.compile(r"keras|tensorflow", re.IGNORECASE),
}
"""Words in or beside the frames that show whose class it is: users call their own classes Trainer, too."""
_OF_ONE_LIBRARY = re.compile(
    r"(?:Seq2Seq)?TrainingArguments|(?:SFT|DPO|PPO|GRPO)(?:Trainer|Config)|TensorFlowTrainer\.fit|OneHotEncoder"
    r"|mean_squared_error"
)


def argument_change(crash: Crash) -> ReleaseChange | None:
    """Return what is known of an argument that a call refuses; None if nothing is."""
    found = _REFUSED.search(crash.facts.message)
    if found is None:
        return None
    frames = crash.facts.frames
    own = next((frame.code or "" for frame in reversed(frames) if frame.yours), crash.log)
    around = "\n".join([crash.log, own, *(frame.file for frame in frames)])
    inner = crash.log if not frames else "" if frames[-1].yours else frames[-1].file
    changes = [
        change
        for change in _changes()
        if not change.is_attribute
        and found["name"] == change.name
        and _is_call(change, found["owner"], found["call"], own, inner)
        and (_is_of_one_library(change) or _MENTIONS[change.package].search(around))
    ]
    return changes[0] if len(changes) == 1 else None


def attribute_change(owner: str, name: str) -> ReleaseChange | None:
    """Return what is known of an attribute or a module that is missing, or of the one that it was in."""
    path = f"{owner}.{name}."
    changes = (change for change in _changes() if change.is_attribute)
    return next((change for change in changes if path.startswith(f"{change.call}.{change.name}.")), None)


def _is_of_one_library(change: ReleaseChange) -> bool:
    if change.call == "Trainer" and change.package == "pytorch-lightning":
        return change.kind == "removed"  # gpus, progress_bar_refresh_rate and others are Lightning's words
    return _OF_ONE_LIBRARY.fullmatch(change.call) is not None


def _is_call(change: ReleaseChange, owner: str | None, call: str, own: str, inner: str) -> bool:
    """Return whether a call of the history is the one in the message, which names no class before Python 3.10.

    Then the user's line shows it, or the frame of the library that passed the arguments on, or, in a text without
    frames, a word of the library.
    """
    owner_known, _, method = change.call.partition(".")
    if owner_known.islower():
        return call == owner_known
    if (method or "__init__") != call:
        return False
    if owner:
        return owner == owner_known
    return method != "" or owner_known in _CALLED.findall(own) or bool(_MENTIONS[change.package].search(inner))


@functools.cache
def _changes() -> tuple[ReleaseChange, ...]:
    releases: list[dict[str, Any]] = tomllib.loads(_FILE.read_text("utf-8"))["releases"]
    return tuple(
        ReleaseChange(
            release["package"],
            release.get("call") or release["attributes_of"],
            name,
            kind,
            release["version"],
            release["before"],
            release.get("instead", {}).get(name),
            "attributes_of" in release,
        )
        for release in releases
        for kind in ("removed", "added")
        for name in release.get(kind, ())
    )
