"""Takes out of a report what its owner may not want to publish: paths, hosts, secrets, and pieces of data."""

from __future__ import annotations

import functools
import os
import re
import socket
import tomllib
from collections import Counter
from pathlib import Path, PurePosixPath, PureWindowsPath

from diagnostics.text.join import count_of

# A path of two folders or more; a drive, home (~) or / begins it. Neither a URL nor a fraction is one.
_PATH = re.compile(
    r"(?<![\w/.:~\\])(?:~?(?:/[^\s/\\:;,'\"`()\[\]{}<>|]+){2,}/?|[A-Za-z]:(?:[\\/]{1,2}[^\s/\\:;,'\"`()\[\]{}<>|]+)+)"
)
_PACKAGES = re.compile(r"^.*[\\/](?:site-packages|dist-packages|lib[\\/]python\d\.\d+)[\\/]")
_URL_SECRET = re.compile(r"(?<=://)[^\s/@'\"]{1,200}@")
_URL_QUERY = re.compile(r"(?P<address>\bhttps?://[^\s?'\"]{1,500})\?[^\s'\")]+")
_MAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\.\d)")
# A machine of somebody's network: three names or more, with a hyphen in one, as no attribute of Python has it, or
# a port behind. Public addresses that are written with https:// stay.
_SUFFIX = r"(?:com|org|net|edu|gov|io|ai|local|localdomain|internal|intranet|lan|corp|cluster)"
_HOST = re.compile(
    rf"(?<![\w./:@-])(?=[\w.]*-|[\w.]+:\d{{2,5}}\b)\w[\w-]{{0,62}}(?:\.[\w-]{{1,63}}){{1,8}}\.{_SUFFIX}(?![\w.-]*\w)"
)
_ADDRESS_6 = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}(?![\w:])")  # or of a network card
# A quoted text of several words is a row of someone's data more often than not; a single word may be a column,
# a parameter or an option, without which a message means nothing.
_TEXT = re.compile(r"(?<!\w)(?P<quote>['\"“])(?P<text>(?=[^'\"“”\n]*\s)[^'\"“”\n]*)(?P<end>['\"”])(?!\w)")
_COMMENT_OR_TEXT = re.compile(
    r"#[^\n]*|(?P<quote>\"\"\"|''')(?P<lines>(?:\\[\s\S]|(?!(?P=quote))[^\\])*)(?:(?P=quote))?"
    r"|(?P<mark>[\"'])(?P<text>(?:\\.|(?!(?P=mark))[^\\\n])*)(?:(?P=mark))?"
)
_NUMBERS = re.compile(r"\[[-\d\s.,eE+\[\]naif]{60,}\]")  # longer than any shape: the numbers of a tensor

_OF_MANY = (
    "localhost",
    "root",
    "user",
    "ubuntu",
    "jovyan",
    "home",
    "admin",
)  # names that say nothing of their owner

PLURALS = {
    "mail address": "mail addresses",
    "network address": "network addresses",
    "query of an address": "queries of addresses",
    "text in quotes": "texts in quotes",
}


@functools.cache
def _secrets() -> tuple[re.Pattern[str], ...]:
    """Read the patterns of secrets; one that was shortened is taken out with the rest of it."""
    table = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text("utf-8"))["secrets"]
    return tuple(re.compile(rf"{row['pattern']}(?:…[^\s\"']*)?", re.VERBOSE) for row in table)


class Redaction:
    """Takes private parts out of texts, and counts what it took.

    Args:
        keeps_all: whether to change nothing.
    """

    def __init__(self, *, keeps_all: bool = False) -> None:
        self._keeps_all, self._taken = keeps_all, Counter[str]()
        names = (socket.gethostname(), "[host]", "host name"), (Path.home().name, "[user]", "user name")
        self._names = [
            (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)"), by, what)
            for name, by, what in names
            if len(name) > 3 and name not in _OF_MANY
        ]

    def code(self, text: str) -> str:
        """Redact paths, hosts and secrets, as in a line of code; quoted texts and numbers stay."""
        if self._keeps_all:
            return text
        text = self.secrets(text)
        text = self._replace(_URL_QUERY, r"\g<address>?[query]", "query of an address", text)
        text = self._replace(_MAIL, "[mail]", "mail address", text)
        text = self._replace(_ADDRESS, "[address]", "network address", text)
        text = self._replace(_ADDRESS_6, "[address]", "network address", text)
        text = self._replace(_HOST, "[host]", "host name", text)
        for pattern, by, what in self._names:
            text = self._replace(pattern, by, what, text)
        return _PATH.sub(lambda found: self._path(found[0]), text)

    def secrets(self, text: str) -> str:
        """Redact passwords, tokens and keys."""
        for pattern in _secrets():
            text = pattern.sub(self._secret, text)
        return self._replace(_URL_SECRET, "[secret]@", "secret", text)

    def source(self, text: str, first: int = 1, last: int | None = None) -> list[str]:
        """Redact lines of a program, from `first` to `last`: as code, and texts of several words in quotes.

        Args:
            text: the whole program, or a line of it: only the whole shows which lines are within a text.
            first: number of a line, counted from 1.
            last: likewise; None for the last one.
        """
        lines = text.split("\n")
        if not self._keeps_all:
            lines = self._without_texts(text, lines, first, last or len(lines))
        return [self.code(line) for line in lines[first - 1 : last]]

    def _without_texts(self, text: str, lines: list[str], first: int, last: int) -> list[str]:
        begin = sum(len(line) + 1 for line in lines[: first - 1])
        end = begin + sum(len(line) + 1 for line in lines[first - 1 : last])

        def private(found: re.Match[str]) -> str:
            if found.end() <= begin or found.start() >= end or found[0].startswith("#"):
                return found[0]
            quote = found["quote"] or found["mark"]
            text = found["lines"] or found["text"] or ""
            held, after = text.split("\n"), found[0][len(quote) + len(text) :]
            if not any(re.search(r"\S\s+\S", line) for line in held):
                return found[0]
            self._taken["text in quotes"] += 1
            return (
                quote + "\n".join(f"[{len(line)} characters]" if line.strip() else line for line in held) + after
            )

        return _COMMENT_OR_TEXT.sub(private, text).split("\n")

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

    def _secret(self, found: re.Match[str]) -> str:
        self._taken["secret"] += 1
        start, end = found.span("secret" if "secret" in found.re.groupindex else 0)
        return f"{found.string[found.start() : start]}[secret]{found.string[end : found.end()]}"

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
