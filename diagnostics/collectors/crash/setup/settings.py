"""Recognises settings that name what does not exist or is taken, or that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash import Symptom
from diagnostics.facts.crash.setup import UnusableSetting

_TARGETS = re.compile(
    r"Target modules? (?P<what>\[[^\]]*\]|\{[^}]*\}|set\(\)|\S+) not found in the base model"
    r"|No modules were targeted for adaptation"
)
_MONITORS = (
    re.compile(
        r"ModelCheckpoint\(monitor='(?P<what>[^']+)'\)[^\n]*? not (?:find|found) (?:the monitored key )?in the "
        r"returned "
        r"metrics: \[(?P<offered>[^\]]*)\]"
    ),
    re.compile(
        r"Early stopping conditioned on metric `(?P<what>[^`]+)` which is not available\. Pass in or modify your "
        r"`EarlyStopping` callback to use any of the following: (?P<offered>[^\n]*)"
    ),
    re.compile(
        r"ReduceLROnPlateau conditioned on metric (?P<what>\S+) which is not available\. Available metrics are: "
        r"\[(?P<offered>[^\]]*)\]"
    ),
    re.compile(
        r"The `metric_for_best_model` training argument is set to '(?P<what>[^']+)', which is not found in the "
        r"evaluation metrics\. The available evaluation metrics are: \[(?P<offered>[^\]]*)\]"
    ),
    re.compile(r"Can save best model only with (?P<what>\S+) available"),
)
_CONFIG = re.compile(
    r"correct the following DeepSpeed config values that mismatch TrainingArguments values:\s*(?P<what>[^\n]*)"
)
_STRATEGIES = re.compile(
    r"load_best_model_at_end requires the sav(?:e|ing) and eval(?:uation)? (?:strategy|steps) to "
    r"(?:match|be the same|be compatible)|load_best_model_at_end requires the saving steps to be a (?:round "
    r")?multiple"
)
_ADDRESS = re.compile(
    r"Address already in use|EADDRINUSE|The server socket has failed to (?:bind|listen)|Only one usage of each "
    r"socket address"
)
_STEPS = re.compile(
    r"[Yy]our (?:input|dataset iterator|dataset) ran out of data[^\n]*?(?:in this case, (?P<what>\d+) "
    r"batches|\Z|\n|$)"
)


def _unusable(crash: Crash) -> UnusableSetting | None:
    message = crash.facts.message
    if found := _TARGETS.search(message):
        return UnusableSetting("target modules", found["what"])
    for pattern in _MONITORS:
        if found := pattern.search(message):
            listed = re.findall(r"[\w/.:@-]+", found.groupdict().get("offered") or "")
            return UnusableSetting("monitor", found["what"], tuple(listed))
    if found := _CONFIG.search(message):
        return UnusableSetting("config", found["what"].strip(" -") or None)
    if _STRATEGIES.search(message):
        return UnusableSetting("strategies")
    if _ADDRESS.search(message):
        port = re.search(r"(?:\[::\]|\d+\.\d+\.\d+\.\d+|localhost|port:?) ?:?(\d{2,5})\b", message)
        return UnusableSetting("address", None if port is None else port[1])
    if found := _STEPS.search(message):
        return UnusableSetting("steps", found["what"])
    return None


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (_unusable,)
