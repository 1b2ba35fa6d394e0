"""The report, and its renderings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diagnostics.engine.finding import SEVERITIES, Severity
from diagnostics.errors import FindingsPresent, InvalidInput, ends_at_the_caller

from .contents import ReportContents
from .formats import KINDS
from .whole_file import write_whole

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__tracebackhide__ = ends_at_the_caller


class Report(ReportContents):
    """All findings in order of importance, and how they are shown. See `ReportContents` for its attributes."""

    def raise_if(self, severity: Severity = "error") -> None:
        """Raise `FindingsPresent` if there is a finding at least as bad as `severity`.

        Raises:
            InvalidInput: `severity` is not one of error, warning, note.
        """
        if severity not in SEVERITIES:
            raise InvalidInput(f"raise_if() was given {severity!r}; it takes one of: {', '.join(SEVERITIES)}.")
        bad = [f for f in self.findings if SEVERITIES.index(f.severity) <= SEVERITIES.index(severity)]
        if bad:
            names = ", ".join(finding.rule for finding in bad)
            raise FindingsPresent(f"{self.title}: {names}\n\n{self}")

    def to_markdown(self, *, redact: bool = True) -> str:
        """Return the report as Markdown, to ask others for help with: see `diagnostics.report.markdown`.

        Args:
            redact: whether to leave out folders, host names, addresses, secrets, and quoted texts and arrays,
                which may be data. The text says what was left out.
        """
        from .markdown import as_markdown

        return as_markdown(self, redact=redact)

    def rendered(self, kind: str, *, redact: bool = True) -> str:
        """Render as one of `diagnostics.report.formats.FORMATS`; `redact`: see `to_markdown`."""
        if kind == "html":
            from .html.page import page

            return page(self)
        if kind == "markdown":
            return self.to_markdown(redact=redact)
        if kind in ("sarif", "concise", "github"):
            from . import annotations

            render = {"sarif": annotations.as_sarif, "concise": annotations.as_concise}
            return render.get(kind, annotations.as_github)(self)
        return self.to_json() if kind == "json" else str(self)

    def save(self, path: str | Path) -> Path:
        """Write the report to a file: ``.txt``, ``.html`` with charts, ``.md``; ``.json`` or ``.sarif``.

        The HTML is a single file without external resources, to open in a browser or send to a colleague; Markdown
        is for those whom you ask for help, see `to_markdown`. An existing file is replaced atomically.

        Raises:
            OSError: the file cannot be written.
            InvalidInput: the file's name ends in something else.
        """
        target = Path(path)
        if target.suffix not in KINDS:
            raise InvalidInput(f"save() was given {str(path)!r}; the name must end in {', '.join(KINDS)}.")
        write_whole(target, self.rendered(KINDS[target.suffix]) + "\n")
        return target

    def _repr_html_(self) -> str:
        """Return what a notebook shows for the report: the same as the HTML file."""
        from .html.page import embedded

        return embedded(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from .terminal import render

        yield from render(self, options.max_width)

    def __str__(self) -> str:
        from .terminal import as_text

        return as_text(self)

    __repr__ = __str__
