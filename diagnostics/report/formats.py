"""The names of the formats of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    ".txt": "text",
    ".json": "json",
    ".html": "html",
    ".md": "markdown",
    ".sarif": "sarif",
}
"""What a report is rendered as, by the ending of a file."""

FORMATS: Final = (*KINDS.values(), "concise", "github")
"""What a report can be rendered as; for the last three, see `diagnostics.report.annotations`."""
