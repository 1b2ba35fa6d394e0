"""Unwraps errors that Keras and TensorFlow wrap: text only, no framework.

A graph that fails says where each node was defined inside the message, not in the traceback; a layer puts its
name before the sentence and its arguments after it; AutoGraph prints a traceback of its own.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import replace

from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.where import is_user_code, shorten

EAGER = "model.compile(..., run_eagerly=True)"
EAGER_FUNCTION = "tf.config.run_functions_eagerly(True)"
EAGER_DATA = "tf.data.experimental.enable_debug_mode() before the dataset is made"

IN_USER_CODE = "in user code:"  # before a traceback, whose last line is the message
PASSED_ON = "Error in user-defined function passed to "  # stands in the line before a traceback within a message

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>\S+)(?: +\*+)? *$', re.MULTILINE
)
_LISTED = r'(?:(?: *File "[^"\n]+", line \d+, in [^\n]*)?\n)*'  # lines of a list, with empty ones between
_DEFINED_AT = re.compile(
    rf"(?:Detected at node (?P<node>\S+) defined at \(most recent call last\)|Stack trace for op definition|"
    rf"The op is created at): *\n(?:<stack traces unavailable>\n)?(?P<list>{_LISTED})"
)
_WRAPPED = re.compile(
    r"^Exception encountered when calling (?P<layer>[^\n]+)\.\n\n(?P<sentence>.*?)\n\n"
    r"(?P<arguments>(?:Call a|A)rguments received by .*)$",
    re.DOTALL,
)
_IN_USER_CODE = re.compile(
    rf"^{IN_USER_CODE}\n(?P<list>.*\n)\n? *(?P<name>[\w.]+(?:Error|Exception)): (?P<rest>.*)$", re.DOTALL
)
_IN_PYTHON = re.compile(  # of a function that a dataset or a graph calls: its line, and its traceback
    r"\b(?P<name>\w{1,80}(?:Error|Exception)): (?P<sentence>[^\n]{0,500})\nTraceback \(most recent call last\):\n"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_SEVERAL = re.compile(r"^\d+ root error\(s\) found\.\n *\(0\) \w+(?: \w+){0,2}: *", re.MULTILINE)
_OPERATION = re.compile(r"\{\{function_node [^{}]*\}\} *|(?P<op>\[Op:\w+\])(?: name: *)?")
_FOR_NODE = re.compile(r" for '(?P<node>\{\{node [^{}]*\}\} = [^']*)' (?=with input shapes)")


def unwrapped(crash: CrashFacts) -> CrashFacts:
    """Put the sentence first in the message, and the lines that the message lists at the end of the frames.

    What else the message held (the node, the operation, the arguments of the layer) stays, after the sentence.
    """
    message = _ANSI.sub("", crash.message)
    name, listed, after = crash.exception, [], []
    in_data = "IteratorGetNext" in message and "{{node" in message  # in a function that the dataset calls
    hidden = message.startswith("Graph execution error:") or in_data
    if user_code := _IN_USER_CODE.match(message):
        listed += _frames(user_code["list"])
        name, message = user_code["name"], user_code["rest"]
    if wrapped := _WRAPPED.match(message):
        message = wrapped["sentence"]
        after += [f"In {wrapped['layer']}", wrapped["arguments"]]
    if message.startswith("Graph execution error:"):
        message = message.removeprefix("Graph execution error:").lstrip("\n")
        nodes = list(_DEFINED_AT.finditer(message))
        listed += next((frames for node in reversed(nodes) if (frames := _frames(node["list"]))), [])
        hidden = not listed or any((node["node"] or "").startswith("gradient") for node in nodes)
        message = _DEFINED_AT.sub("", message)
    message = _SEVERAL.sub("", message.strip())
    python = _IN_PYTHON.search(message) if PASSED_ON in message or "PyFunc" in message else None
    if python is not None:
        hidden = False
        listed += _frames(python["rest"])
        _, node, from_node_on = python["rest"].partition("\t [[")
        name, message = python["name"], f"{python['sentence']}\n{node}{from_node_on}"
    message, decorations = _bare(message)
    if (name, message, listed) == (crash.exception, crash.message, []):
        return crash
    new = _beyond(crash, listed)
    return replace(
        crash,
        exception=name,
        message="\n".join([message, *decorations, *after]).strip(),
        frames=(*crash.frames, *new),
        unhide=_unhide(crash, in_data) if hidden and not any(frame.yours for frame in new) else None,
    )


def _bare(message: str) -> tuple[str, list[str]]:
    """Split the sentence from the node and the operation in its line."""
    first, *rest = message.split("\n")
    decorations = [found["op"] for found in _OPERATION.finditer(first) if found["op"]]
    first = _OPERATION.sub("", first).strip()
    if node := _FOR_NODE.search(first):
        decorations.append(node["node"])
        first = f"{first[: node.start()]}, {first[node.end() :]}"
    return "\n".join([first, *rest]), decorations


def _frames(text: str) -> list[FrameFacts]:
    return [
        FrameFacts(
            shorten(found["file"]), int(found["line"]), found["function"], None, is_user_code(found["file"])
        )
        for found in _FRAME.finditer(text)
        if found["file"] != FROZEN  # TensorFlow lists a function that `diagnose run` has replaced, too
    ]


def _beyond(crash: CrashFacts, listed: list[FrameFacts]) -> list[FrameFacts]:
    """Leave out the lines down to the last that the traceback has too.

    Files are called as the traceback calls them: XLA cuts the front of a path off.
    """
    yours = [frame for frame in crash.frames if frame.yours]
    shared = [
        number
        for number, frame in enumerate(listed)
        if any((frame.line, frame.function) == (y.line, y.function) and _same(frame, y) for y in yours)
    ]
    new = []
    for frame in listed[max(shared, default=-1) + 1 :]:
        file = next((y.file for y in yours if frame.yours and _same(frame, y)), frame.file)
        code = linecache.getline(file, frame.line).strip() if crash.live and frame.yours else ""
        new.append(replace(frame, file=file, code=code or None))
    return new


def _same(one: FrameFacts, other: FrameFacts) -> bool:
    """Whether two lines are of one file; a traceback calls a notebook's cell by its number, a graph does not."""
    if "ipykernel_" in one.file and other.file.startswith("In["):
        return True
    return one.file == other.file or one.file.endswith(f"/{other.file}") or other.file.endswith(f"/{one.file}")


def _unhide(crash: CrashFacts, in_data: bool) -> str:
    if in_data:
        return EAGER_DATA
    in_fit = any(frame.function == "error_handler" and frame.file.startswith("keras") for frame in crash.frames)
    return EAGER if in_fit else EAGER_FUNCTION
