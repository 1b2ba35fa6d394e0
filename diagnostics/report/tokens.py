"""The result of `show_tokens`: a strip of tokens for each row, and what the loss does with each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from diagnostics.facts.batch_view import Token, TokenFacts, TokenRow
from diagnostics.text.join import count_of
from diagnostics.text.visible import escaped, visible

from .as_text import AsText

if TYPE_CHECKING:
    from diagnostics.facts.batch_view import State

LONG = 300  # tokens of a row: of a longer one, the middle of each uniform stretch is left out
ENDS = 20  # tokens on both sides of what is left out
PADS = 3  # padding tokens in a row, before they are counted instead
UNKNOWN = "?"  # the mark of an unknown token, whatever its state
MARKS: dict[State, str] = {"trained": "━", "ignored": " ", "padding": "·", "read": " "}
OF_UNKNOWN = ("bold red", "background:#d55e00;color:#000000")
STYLES: dict[State, str] = {"trained": "bold blue", "ignored": "", "padding": "dim", "read": ""}
COLOURS: dict[State, str] = {
    "trained": "background:#0072b2;color:#ffffff",
    "ignored": "background:rgba(128,128,128,.22)",
    "padding": "opacity:.7;border:1px dotted",
    "read": "background:rgba(128,128,128,.22)",
}
SHIFTED = (
    "Each labelled token is predicted from the tokens before it: the model shifts the labels by one, so the "
    "label at a place is its own token."
)
SAYS = {
    "next token": SHIFTED,
    "shifted by hand": (
        "The labels are shifted by hand: each is the token after its place (after →). That is right for a loop "
        "that computes its own loss; a causal model of transformers shifts labels= once more."
    ),
    "in place": "Each labelled token has the label after its →, or is its own label; labels are not shifted.",
    "of a decoder": "The labels are the decoder's tokens, in rows of their own; -100 is ignored.",
    "of the row": "Each row has one label; no token has a label of its own.",
    "none": "The batch has no labels, so it does not show which tokens are trained.",
}


@dataclass(frozen=True, repr=False)
class TokenStrip(AsText):
    """What `diagnostics.show_tokens` found.

    Attributes:
        facts: the tokens of the whole batch.
        title: what was read.
        examples: how many rows are shown.
    """

    facts: TokenFacts
    title: str
    examples: int

    @property
    def trained(self) -> int:
        """The number of tokens in the batch that the loss counts."""
        return self._count("trained")

    @property
    def ignored(self) -> int:
        """The number of tokens in the batch that are read and not trained."""
        return self._count("ignored")

    @property
    def padding(self) -> int:
        """The number of tokens in the batch that only fill up its rows."""
        return self._count("padding")

    @property
    def unknown(self) -> int:
        """The number of tokens in the batch that stand for words outside the vocabulary."""
        return sum(token.role == "unknown" for row in self._inputs() for token in row.tokens)

    @property
    def ends(self) -> tuple[int, int]:
        """The number of end tokens in the inputs, and of those that are trained."""
        tokens = [token for row in self._inputs() for token in row.tokens]
        return (
            sum(token.role == "end" for token in tokens),
            sum(token.state == "trained" and token.target_role == "end" for token in tokens),
        )

    @property
    def starts(self) -> tuple[int, ...]:
        """The number of start tokens in each row."""
        return tuple(sum(token.role == "start" for token in row.tokens) for row in self._inputs())

    def counts(self) -> str:
        """Return the line of counts, over the whole batch."""
        rows = self._inputs()
        total = sum(len(row.tokens) for row in rows) - self.padding
        said = [f"{count_of(len(rows), 'row')}: {count_of(total, 'token')}"]
        if self.facts.labels in ("next token", "shifted by hand", "in place"):
            share = f" ({self.trained / total:.0%})" if total else ""
            said.append(f"{self.trained:,} trained{share}, {self.ignored:,} ignored")
        elif self.facts.labels == "of a decoder":
            said.append(f"{self.trained:,} trained in the decoder")
        said.append(f"{self.padding:,} padding")
        if self.unknown:
            said.append(f"{self.unknown:,} unknown ({self.unknown / total:.0%})" if total else "")
        line = ", ".join(said)
        if self.facts.has_ends:
            there, trained = self.ends
            by_token = self.facts.labels in ("next token", "shifted by hand", "in place")
            line += f"; end tokens: {there} in the input" + (f", {trained} trained" if by_token else "")
        if self.facts.has_ends is not None:
            least, most = min(self.starts), max(self.starts)
            line += f"; start tokens per row: {least if least == most else f'{least} to {most}'}"
        return f"{line}."

    def to_html(self) -> str:
        """Return the strips as HTML that needs no style of a page."""
        return "".join(
            [
                f"<div><b>{escaped(self.title)}</b>",
                self.strips(),
                f"<p>{escaped(self.counts())} {escaped(SAYS[self.facts.labels])}</p></div>",
            ]
        )

    def strips(self) -> str:
        """Return the rows shown as HTML, without title and counts."""
        return "".join(_as_html(row, title) for row, title in self._shown())

    _repr_html_ = to_html

    def _lines(self, width: int) -> Iterator[Text]:
        yield Text(visible(self.title), style="bold")
        yield from self.body(width)

    def body(self, width: int) -> Iterator[Text]:
        """Yield the lines below the title, at most that many columns wide."""
        for row, title in self._shown():
            yield Text()
            yield Text(title, style="bold")
            yield from _strip(row, width)
        yield Text()
        yield Text(self.counts())
        yield Text(f"{self._legend()}{SAYS[self.facts.labels]}", style="dim")

    def _legend(self) -> str:
        shown = {token.state for row, _ in self._shown() for token in row.tokens}
        named = [("trained", "━ trained"), ("ignored", "no line: ignored"), ("padding", "· padding")]
        words = [word for state, word in named if state in shown]
        words += ["? unknown"] if self.unknown else []
        return f"{', '.join(words)}. " if len(words) > 1 else ""

    def _shown(self) -> Iterator[tuple[TokenRow, str]]:
        number = 0
        for row in self.facts.rows:
            number += not row.decoder
            if number > self.examples:
                return
            yield row, _title(row, number)

    def _inputs(self) -> list[TokenRow]:
        return [row for row in self.facts.rows if not row.decoder]

    def _count(self, state: State) -> int:
        rows = self.facts.rows if state == "trained" else self._inputs()
        return sum(row.count(state) for row in rows)


def _title(row: TokenRow, number: int) -> str:
    """Describe a row: its counts, its label, and where its special tokens are."""
    if row.decoder:
        return (
            f"row {number}, labels of the decoder: {row.count('trained')} trained, {row.count('padding')} ignored"
        )
    named = [(row.count(state), state) for state in ("trained", "ignored", "padding")]
    said = [f"{count} {state}" for count, state in named if count]
    if row.count("read"):
        said.insert(0, count_of(row.count("read"), "token"))
    if row.segments > 1:
        said.append(count_of(row.segments, "segment"))
    if row.at_limit:
        said.append("at the length limit, so perhaps truncated")
    line = f"row {number}: {', '.join(said)}"
    if row.label:
        line += f"; label {row.label}"
    counted = Counter((token.text, token.role) for token in row.tokens if token.role not in ("", "padding"))
    special = [f"{text} {role}" + (f" x{count}" if count > 1 else "") for (text, role), count in counted.items()]
    return visible(line + (f"; {', '.join(special)}" if special else ""))


@dataclass(frozen=True)
class _Cell:
    text: str
    state: State
    position: int
    segment: int
    special: bool = False
    unknown: bool = False


def _cells(row: TokenRow) -> Iterator[_Cell]:
    """Yield what is shown of a row: long padding is counted, and of a long row, stretches are left out."""
    is_long = len(row.tokens) > LONG
    for (state, segment, _), group in groupby(row.tokens, key=_stretch):
        tokens = list(group)
        first = tokens[0]
        if state == "padding" and len(tokens) > PADS and len({token.text for token in tokens}) == 1:
            yield _Cell(f"{_plain(first.text)} x{len(tokens)}", state, first.position, segment, True)
        elif is_long and len(tokens) > 3 * ENDS:
            yield from map(_cell, tokens[:ENDS])
            left = len(tokens) - 2 * ENDS
            yield _Cell(f"… {left:,} more …", state, tokens[ENDS].position, segment)
            yield from map(_cell, tokens[-ENDS:])
        else:
            yield from map(_cell, tokens)


def _stretch(token: Token) -> tuple[State, int, bool]:
    return token.state, token.segment, bool(token.role and token.state != "padding")


def _cell(token: Token) -> _Cell:
    text = _plain(token.text) + (f"→{_plain(token.label)}" if token.label else "")
    return _Cell(text, token.state, token.position, token.segment, bool(token.role), token.role == "unknown")


def _plain(text: str) -> str:
    """Return a token's text on one line, with its spaces."""
    return visible(text.replace("\n", "⏎").replace("\t", "⇥")) or "∅"


def _strip(row: TokenRow, width: int) -> Iterator[Text]:
    """Yield lines of tokens, each with the position of its first one, and a line of marks below."""
    cells = list(_cells(row))
    margin = max([2, *(len(str(cell.position)) for cell in cells)]) + 2
    line: list[_Cell] = []
    used, before = 0, 0
    for cell in cells:
        size = min(cell_len(cell.text), width - margin - 2) + 1
        if line and (used + size > width - margin - 1 or cell.segment != before):
            yield from _line(line, margin, width)
            line, used = [], 0
        if cell.segment != before or (row.segments > 1 and cell is cells[0]):
            yield Text(f"{'':{margin}}segment {cell.segment + 1}", style="italic")
        line.append(cell)
        used, before = used + size, cell.segment
    if line:
        yield from _line(line, margin, width)


def _line(cells: Sequence[_Cell], margin: int, width: int) -> Iterator[Text]:
    above, below = Text(no_wrap=True), Text(" " * margin, no_wrap=True)
    above.append(f"{cells[0].position:>{margin - 1}} ", style="dim")
    for cell in cells:
        text = cell.text
        if cell_len(text) > width - margin - 2:
            text = set_cell_size(text, width - margin - 3) + "…"
        above.append("│", style="dim")
        style = OF_UNKNOWN[0] if cell.unknown else STYLES[cell.state]
        above.append(text, style=f"{style} italic".strip() if cell.special else style)
        below.append(" " + (UNKNOWN if cell.unknown else MARKS[cell.state]) * cell_len(text), style=style)
    above.append("│", style="dim")
    yield above
    if below.plain.strip():
        yield below


def _as_html(row: TokenRow, title: str) -> str:
    boxes = []
    before = 0
    for place, cell in enumerate(_cells(row)):
        if row.segments > 1 and (cell.segment != before or not place):
            boxes.append(f"<div><i>segment {cell.segment + 1}</i></div>")
        before = cell.segment
        colours = OF_UNKNOWN[1] if cell.unknown else COLOURS[cell.state]
        style = f"{colours};padding:0 .25em;margin:1px;border-radius:3px;white-space:pre"
        hint = f"position {cell.position}, {cell.state}" + (", unknown" if cell.unknown else "")
        boxes.append(f'<span title="{hint}" style="{style};display:inline-block">{escaped(cell.text)}</span>')
    strip = "".join(boxes)
    return f"<p style='margin-bottom:0'>{escaped(title)}</p><div style='font-family:monospace'>{strip}</div>"
