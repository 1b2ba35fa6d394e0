"""Replaces a function of a framework's by one that looks on, and puts it back."""

from __future__ import annotations

# Code so named is not taken for the reader's, nor shown in a traceback; and a warning that names its caller's line
# counts past it, as it does past Python's own import machinery, which it knows by the last two words.
FROZEN = "<frozen diagnostics importlib _bootstrap>"
