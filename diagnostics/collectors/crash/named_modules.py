"""Spells out the module of an attribute error that names none, as Python 2 writes it.

``AttributeError: 'module' object has no attribute 'app'`` says nothing; the line ``tf.app.run()`` names the module
by the alias that nearly everybody gives it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from diagnostics.collectors.tracebacks.unknown_errors import entries
from diagnostics.facts.crash import CrashFacts

_UNNAMED = re.compile(r"^'module' object has no attribute '(?P<name>\w{1,80})'")


def with_module(crash: CrashFacts) -> CrashFacts:
    """Write the message as Python 3 does, if the line that failed names the module; else return it unchanged."""
    found = _UNNAMED.match(crash.message)
    line = (crash.frames[-1].code or "")[:400] if found and crash.frames else ""
    if found is None or not line:
        return crash
    held = {match[1] for match in re.finditer(rf"(?<![\w.])((?:\w+\.)*\w+)\.{found['name']}\b", line)}
    if len(held) != 1:
        return crash
    first, dot, rest = held.pop().partition(".")
    module = f"{entries('aliases').get(first, first)}{dot}{rest}"
    if module.startswith("tensorflow."):  # as TensorFlow 2 calls its parts
        module = f"tensorflow._api.v2.{module.partition('.')[2]}"
    return replace(crash, message=f"module '{module}' has no attribute '{found['name']}'")
