"""Says which enumeration lacks a member, where Python names only the member."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts


def member_of(crash: CrashFacts, name: str) -> str | None:
    """Say that an enumeration lacks a member: Python names only the member; the line before names the class."""
    frames = crash.frames
    if len(frames) < 2 or not re.search(r"(?:^|[\\/])enum\.py$", frames[-1].file):
        return None
    found = re.search(rf"(?<!\w)(?P<owner>[A-Za-z_]\w*)\.{re.escape(name)}\b", frames[-2].code or "")
    owner = "The enumeration that the line names" if found is None else found["owner"]
    return (
        f"{owner} has no member {name}: the package that defines it is of another release than this line was "
        "written for, most often an older one. python -m pip show that package, and the release that the code's "
        "requirements name."
    )
