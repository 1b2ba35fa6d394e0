"""Reads a log from a file or a pipe, in any encoding; only the end of a huge one."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from diagnostics.collectors.notebook.file import LARGEST
from diagnostics.errors import InvalidInput

MOST_BYTES = 8 * 2**20  # from the end, which contains the failure that ended the program
_CHUNK = 2**20
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_COMPRESSED = {b"\x1f\x8b": "gunzip -c", b"BZh": "bunzip2 -c", b"\xfd7zXZ": "xz -dc", b"(\xb5/\xfd": "zstd -dc"}


@dataclass(frozen=True)
class Log:
    """The text of a log.

    Attributes:
        name: the name of its file, or "standard input".
        size: total bytes.
        skipped: bytes at the beginning that were not read.
    """

    name: str
    text: str
    size: int
    skipped: int = 0

    @property
    def note(self) -> str | None:
        """A note for the user if the log was not read completely, otherwise None."""
        if not self.skipped:
            return None
        read = self.size - self.skipped
        return (
            f"{self.name} has {self.size / 2**20:.0f} MB; only the last {read / 2**20:.0f} MB were read. "
            "If the failure is before that, pass that part alone."
        )


def read_log(file: str) -> Log:
    """Read the last `MOST_BYTES` of a file, or of standard input for ``-``; only the errors of a notebook.

    Raises:
        InvalidInput: it cannot be read, or is not text.
    """
    if file == "-":
        raw = getattr(sys.stdin, "buffer", None)
        if raw is None:
            text = sys.stdin.read()
            return Log("standard input", text, len(text))
        return _log("standard input", *_end_of(raw))
    try:
        with Path(file).open("rb") as stream:
            end = _end_of(stream, LARGEST if file.endswith(".ipynb") else MOST_BYTES)
    except IsADirectoryError:
        raise InvalidInput(f"{file} is a directory; pass the file with the traceback.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{file} cannot be read: {reason}.") from None
    return _log(file, *end)


def _end_of(stream: BinaryIO, most: int = MOST_BYTES) -> tuple[bytes, bytes, int]:
    """Return the first bytes, the last `most`, and the total size."""
    head, kept, size = b"", bytearray(), 0
    while chunk := stream.read(_CHUNK):
        head = head or chunk[:4]
        size += len(chunk)
        kept += chunk
        if len(kept) > 2 * most:
            del kept[: len(kept) - most]
    del kept[: max(0, len(kept) - most)]
    return head, bytes(kept), size


def _log(name: str, head: bytes, raw: bytes, size: int) -> Log:
    text = _decoded(raw, head, name)
    skipped = size - len(raw)
    if skipped:
        text = text.partition("\n")[2]  # the first line is incomplete
    return Log(name, _of_notebook(text)[-MOST_BYTES:] if name.endswith(".ipynb") else text, size, skipped)


def _decoded(raw: bytes, head: bytes, name: str) -> str:
    """Decode UTF-8, UTF-16 (PowerShell) or, failing that, Windows' own encoding.

    Raises:
        InvalidInput: it is not text.
    """
    for magic, command in _COMPRESSED.items():
        if head.startswith(magic):
            raise InvalidInput(f"{name} is compressed. Try: {command} {name} | diagnose explain -")
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return raw.removeprefix(mark).decode(encoding, errors="replace")
    sample = raw[:4096]
    if sample.count(0) > len(sample) / 4:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if max(even, odd) > 8 * min(even, odd):
            return raw.decode("utf-16-be" if even > odd else "utf-16-le", errors="replace")
    if 0 in raw and b"Traceback" not in raw:
        raise InvalidInput(
            f"{name} is not a text file. diagnose explain reads printed output: a log, or a traceback that was "
            "copied into a file."
        )
    text = raw.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    if broken > 8 and 2 * broken > sum(character > "\x7f" for character in text):
        return raw.decode("cp1252", errors="replace")
    return text


def _of_notebook(text: str) -> str:
    """Return the tracebacks of a notebook's cells, in order; or the text unchanged if it is not a notebook."""
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        outputs = [output for cell in json.loads(text)["cells"] for output in cell.get("outputs", ())]
        return "\n".join("\n".join(o["traceback"]) for o in outputs if o["output_type"] == "error")
    return text
