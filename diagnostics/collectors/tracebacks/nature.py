"""Says of a failure that no rule recognises what kind of failure it is, and whose line raised it."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts

_NETWORK = re.compile(
    r"(?:Connection|ConnectTimeout|ReadTimeout|Timeout|MaxRetry|NewConnection|Proxy|SSL|HTTP|HfHubHTTP|URL|Gateway"
    r"|NameResolution|RepositoryNotFound|GatedRepo|LocalEntryNotFound|OfflineModeIsEnabled|EntryNotFound)"
    r"(?:Error|Timeout)?|gaierror|herror|ConnectionRefusedError|ConnectionResetError|ChunkedEncodingError|OfflineModeIsEnabled"
)
_NO_ANSWER = re.compile(
    r"couldn't connect to|Can't load (?:the configuration|tokenizer|the model|image processor|feature extractor)"
    r"|Max retries exceeded|Temporary failure in name resolution|Name or service not known|Connection "
    r"(?:refused|reset)"
    r"|Network is unreachable|outgoing traffic has been disabled|\b(?:401|403|404|429|50[0234]) "
    r"(?:Client|Server) Error"
    r"|HTTP Error \d{3}|is not a valid model identifier|not a local folder"
)
_FILE = {
    "FileNotFoundError": "a file or folder is not where the code looks for it",
    "NotADirectoryError": "a path leads through something that is no folder",
    "IsADirectoryError": "a folder stands where a file is expected",
    "FileExistsError": "a file or folder is there already",
    "PermissionError": "the process may not read or write a file",
}
_MISSING_FILE = re.compile(
    r"No such file or directory|does not exist\b|(?:does not|doesn't) appear to have a file named"
)
_DISK = re.compile(r"No space left on device|Disk quota exceeded|file write failed|\bENOSPC\b")
_LACKING = re.compile(r"No module named '?(?P<module>[\w.]+)'?")
_CIRCULAR = re.compile(
    r"cannot import name '\w+' from (?:partially initialized module )?'(?P<module>[\w.]+)' \(most likely"
)
_STOPPED = {
    "KeyboardInterrupt": "somebody stopped the program with Ctrl+C",
    "SystemExit": "the program ended itself by sys.exit()",
    "SignalException": "a signal from outside ended the program",
}
_PYTHON = {
    "KeyError": "a dict or table has no entry of that name",
    "IndexError": "a list or an axis is shorter than the index",
    "NameError": "a name is used that was never defined",
    "UnboundLocalError": "a variable is used before it has a value",
    "AttributeError": "an object lacks the attribute",
    "TypeError": "a function got arguments that it does not take, or a value is of another type",
    "ValueError": "a value is not one that the function takes",
    "ZeroDivisionError": "something is divided by zero",
    "AssertionError": "a check in the code failed",
    "SyntaxError": "Python cannot read the source",
    "IndentationError": "Python cannot read the source",
    "TabError": "Python cannot read the source",
    "NotImplementedError": "a method is not implemented for this case",
    "UnicodeDecodeError": "a file is not in the encoding that it is read in",
    "JSONDecodeError": "a text is not JSON",
    "ParserError": "a table cannot be parsed",
    "StopIteration": "an iterator has ended",
    "RecursionError": "a function calls itself without end",
    "ImportError": "a name cannot be imported",
}


_SHARED = ("TypeError", "ValueError", "IndexError", "NotImplementedError", "AssertionError")
"""What compiled libraries raise in the caller's line, too: it counts only in Python's own words."""
_PYTHONS_OWN = re.compile(
    r"^(?:list|tuple|string|range object|pop) ?\w* (?:index )?out of range|positional arguments? "
    r"|required positional"
    r"|unexpected keyword argument|object is not (?:subscriptable|iterable|callable)|unsupported operand type"
    r"|invalid literal for int|could not convert string to float|values to unpack|object does not support|^$"
)
_PLAIN = ("KeyError", "NameError", "UnboundLocalError", "AttributeError", "ZeroDivisionError", "SyntaxError")
"""What says enough by its name, wherever it was raised: the others may be a library's judgement of tensors."""


def nature_of(crash: CrashFacts) -> str | None:
    """Say in a sentence what kind of failure it is, where that is no matter of training; None if it may be one."""
    name, message = crash.exception, crash.message
    if name in _STOPPED:
        return f"{_STOPPED[name][:1].upper()}{_STOPPED[name][1:]}: nothing has failed."
    if _DISK.search(message):
        return "The disk or the quota is full: the training code is not at fault."
    if _NETWORK.fullmatch(name) or _NO_ANSWER.search(message):
        return (
            "It is a failure of the network or of a server's answer (no connection, no permission, or a wrong "
            "name), not of the training code."
        )
    if name in _FILE or (name == "OSError" and _MISSING_FILE.search(message)):
        what = _FILE.get(name, "a file or folder is not where the code looks for it")
        return f"It is a failure of the file system, not of the training: {what}{_at(crash)}."
    if found := _CIRCULAR.search(message):
        top = found["module"].split(".")[0]
        return f"Modules import each other in a circle; often a file of yours is called {top}.py, as a package is."
    if found := _LACKING.search(message):
        return (
            f"The module {found['module']} cannot be imported: it is not installed for the Python that ran, or "
            "it is a module of yours in another folder."
        )
    last = crash.frames[-1] if crash.frames else None
    own = last is not None and last.yours
    if name in _PYTHON and (name in _PLAIN or (own and (name not in _SHARED or _PYTHONS_OWN.search(message)))):
        whose = "" if last is None else " of the code's own" if last.yours else f" raised in {last.file}"
        article = "an" if name[0] in "AEIOU" else "a"
        what = f"{_PYTHON[name]}{_at(crash)}"
        return f"It is {article} {name}{whose}, not a failure of training that a rule knows: {what}."
    return None


def _at(crash: CrashFacts) -> str:
    """Name the user's own line; empty if there is none."""
    return "" if crash.where is None else f", at {crash.where}"
