"""Takes out of a report what its owner may not want to publish: paths, hosts, secrets, and pieces of data."""

from __future__ import annotations

import os
import re
import socket
from collections import Counter
from pathlib import PurePosixPath, PureWindowsPath

from diagnostics.text.join import count_of

# A path of two folders or more; a drive, home (~) or / begins it. Neither a URL nor a fraction is one.
_PATH = re.compile(
    r"(?<![\w/.:~\\])(?:~?(?:/[^\s/\\:;,'\"`()\[\]{}<>|]+){2,}/?|[A-Za-z]:(?:[\\/]{1,2}[^\s/\\:;,'\"`()\[\]{}<>|]+)+)"
)
_PACKAGES = re.compile(r".*[\\/](?:site-packages|dist-packages|lib[\\/]python\d\.\d+)[\\/]")
_URL_SECRET = re.compile(r"(?<=://)[^\s/@'\"]{1,200}@")
_URL_QUERY = re.compile(r"(?P<address>\bhttps?://[^\s?'\"]{1,500})\?[^\s'\")]+")
_SECRET = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|AKIA[A-Z0-9]{12,}|[0-9a-f]{40})\b"
)
_MAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\.\d)")
# A machine of somebody's network: three names or more, with a hyphen in one, as no attribute of Python has it, or
# a port behind. Public addresses that are written with https:// stay.
_SUFFIX = r"(?:com|org|net|edu|gov|io|ai|local|localdomain|internal|intranet|lan|corp|cluster)"
_HOST = re.compile(
    rf"(?<![\w./:@-])(?=[\w.]*-|[\w.]+:\d{{2,5}}\b)\w[\w-]{{0,62}}(?:\.[\w-]{{1,63}}){{1,8}}\.{_SUFFIX}(?![\w.-]*\w)"
)
# A quoted text of several words is a row of someone's data more often than not; a single word may be a column,
# a parameter or an option, without which a message means nothing.
_TEXT = re.compile(r"(?<!\w)(?P<quote>['\"“])(?P<text>[^'\"“”\n]*\s[^'\"“”\n]*)(?P<end>['\"”])(?!\w)")
_NUMBERS = re.compile(r"\[[-\d\s.,eE+\[\]naif]{60,}\]")  # longer than any shape: the numbers of a tensor

PLURALS = {
    "mail address": "mail addresses",
    "network address": "network addresses",
    "query of an address": "queries of addresses",
    "text in quotes": "texts in quotes",
}


class Redaction:
    """Takes private parts out of texts, and counts what it took.

    Args:
        keeps_all: whether to change nothing.
    """

    def __init__(self, *, keeps_all: bool = False) -> None:
        self._keeps_all, self._taken = keeps_all, Counter[str]()
        self._host = socket.gethostname()

    def code(self, text: str) -> str:
        """Redact paths, hosts and secrets, as in a line of code; quoted texts and numbers stay."""
        if self._keeps_all:
            return text
        text = self._replace(_SECRET, "[secret]", "secret", text)
        text = self._replace(_URL_SECRET, "[secret]@", "secret", text)
        text = self._replace(_URL_QUERY, r"\g<address>?[query]", "query of an address", text)
        text = self._replace(_MAIL, "[mail]", "mail address", text)
        text = self._replace(_ADDRESS, "[address]", "network address", text)
        text = self._replace(_HOST, "[host]", "host name", text)
        if len(self._host) > 3 and self._host != "localhost":
            text = self._replace(re.compile(rf"(?<!\w){re.escape(self._host)}(?!\w)"), "[host]", "host name", text)
        return _PATH.sub(lambda found: self._path(found[0]), text)

    def prose(self, text: str) -> str:
        """Redact quoted texts and the numbers of tensors, too: what a message may hold of the data."""
        if self._keeps_all:
            return text
        text = _TEXT.sub(self._quoted, text)
        return self.code(self._replace(_NUMBERS, "[numbers]", "array", text))

    def file(self, path: str) -> str:
        """Shorten the path of a file: within an installed package to that, else to its name."""
        if self._keeps_all:
            return path
        return self._path(path) if os.path.isabs(path) or "\\" in path or ".." in path else path

    @property
    def taken(self) -> str:
        """What was taken out: ``2 paths, 1 secret``; empty if that is nothing."""
        return ", ".join(count_of(n, what, PLURALS.get(what)) for what, n in sorted(self._taken.items()) if n)

    def _replace(self, pattern: re.Pattern[str], by: str, what: str, text: str) -> str:
        text, count = pattern.subn(by, text)
        if count:
            self._taken[what] += count
        return text

    def _quoted(self, found: re.Match[str]) -> str:
        self._taken["text in quotes"] += 1
        return f"{found['quote']}[{len(found['text'])} characters]{found['end']}"

    def _path(self, path: str) -> str:
        short = _PACKAGES.sub("", path)
        if short == path:
            kind = PureWindowsPath if "\\" in path or path[1:2] == ":" else PurePosixPath
            short = kind(path).name or path
        self._taken["path"] += short != path
        return short
