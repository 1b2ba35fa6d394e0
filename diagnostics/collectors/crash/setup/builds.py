"""Recognises the fault of a build that failed: the exception says only that it did, and the log says why."""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostics.collectors.crash.frames import Crash
from diagnostics.collectors.crash.messages.known import explained
from diagnostics.collectors.crash.messages.table import Family
from diagnostics.facts.crash import Symptom
from diagnostics.facts.crash.known import KnownFailure

_FAULTS = Family("build-faults")
_FAILED = re.compile(
    r"Error building extension '|Command '\['ninja'|ninja: build stopped|[Ee]rror compiling objects for extension"
    r"|Failed building wheel for"
    r"|command '[^'\n]{0,120}(?:gcc|g\+\+|nvcc|cl\.exe|ninja)[^'\n]{0,30}' (?:failed|returned)"
    r"|torch_extensions/\S{1,200}\.so: cannot open shared object file|has no attribute 'ds_opt_adam'"
)


def _fault(crash: Crash) -> KnownFailure | None:
    """Look in the log for the fault; what was built is known from the exception, so no other build is meant."""
    if _FAILED.search(crash.facts.message) is None:
        return None
    found = _FAULTS.search(crash.facts.message) or _FAULTS.search(crash.log)
    return None if found is None else explained(found)


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (_fault,)
