"""Recognises settings that name what does not exist or is taken, or that contradict each other."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash, Recogniser
from diagnostics.collectors.crash.messages.table import Family, Found
from diagnostics.facts.crash.setup import UnusableSetting


@Family("settings").reader
def _unusable(crash: Crash, found: Found) -> UnusableSetting | None:
    message = crash.facts.message
    what = found.get("what")
    if found.kind == "address":
        port = re.search(r"(?:\[::\]|\b\d{1,3}(?:\.\d{1,3}){3}|localhost|port:?) ?:?`?(\d{2,5})\b", message)
        what = None if port is None else port[1]
    if found.kind == "config":
        what = (what or "").strip(" -") or None
    return UnusableSetting(found.kind, what, tuple(re.findall(r"[\w/.:@-]+", found.get("offered") or "")))


RECOGNISERS: tuple[Recogniser, ...] = (_unusable,)
