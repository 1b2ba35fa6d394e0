"""Says what an exception of Python's own proves: which value is missing, and what usually leaves it out.

Read are the message and the line that raised it. What they leave open is told as open.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostics.collectors.crash.named_modules import module_of
from diagnostics.facts.crash import CrashFacts

from ..unknown_errors import entries, search
from .conditions import condition_of
from .environments import arguments_of_environment, of_environment
from .keys import key_of
from .lines import expression_before, indexed
from .missing import NO_SUCH_PATH, module_missing, name_missing, pip_name, to_be_written
from .nothing import library_of, none, none_compared, none_used, unset, unset_by

MOST_READ = 400  # characters of a line or message: names stand at their beginning


def proved(crash: CrashFacts) -> str | None:
    """Say in a sentence or two what the message and the line prove; None if that is no more than the name says."""
    line = (crash.frames[-1].code or "" if crash.frames else "")[:MOST_READ]
    message = crash.first_line[:MOST_READ]
    written = NO_SUCH_PATH.search(message) if crash.exception == "FileNotFoundError" else None
    if written is not None and (said := to_be_written(written, line)) is not None:
        return said
    for row in entries("sentences"):
        if crash.exception in row["exceptions"] and (found := search(row, message)):
            return str(row["said"].format_map(found.groupdict()))
    in_line = line and not re.search(r"\.shape\b|\.size\(\)|\.split\(|sys\.argv", line)
    if (
        in_line
        and crash.exception == "IndexError"
        and (library := library_of(crash))
        and _OUT_OF_RANGE.search(message)
    ):
        return (
            f"{library} itself takes a part that is not there. What it was given is empty or has fewer parts than "
            f"it expects, or {library} and a package beside it are of releases that do not fit: print what "
            "your line hands it."
        )
    if crash.exception == "UnboundLocalError" and (said := unset_by(crash, message)) is not None:
        return said
    for exceptions, pattern, tell in _TOLD:
        if crash.exception in exceptions and (found := pattern.search(message)) and (said := tell(found, line)):
            return said
    if crash.exception == "KeyError":
        return key_of(crash, message, line)
    if crash.exception in ("AttributeError", "ModuleAttributeError"):
        return _attribute(crash, message, line)
    return None


def _unpacked(found: re.Match[str], line: str) -> str:
    wanted, got = found["wanted"], found["got"]
    given = got or ("more" if found["way"] == "too many" else "fewer")
    names, equals, right = line.partition("=")
    if told := of_environment(wanted, got, found["way"] == "too many", line):
        return told
    if parts := next((said for call, said in entries("returns").items() if call in right), None):
        return str(parts)
    if got == "0" and (not line or "zip(*" in line or "for " not in line):
        return (
            "The right side is empty: what it is made of was not found. No file matched the path or pattern, "
            "every row was filtered out, or a cache holds the empty list of an earlier run."
        )
    if re.search(r"\.(?:shape|size\(\))", right if equals else line):
        held = expression_before(right, r"\.(?:shape|size\(\))") or "The tensor"
        axes = f"{given} axes" if got else f"{given} than {wanted} axes"
        named = f" ({' '.join(names.split())})" if equals and names.count(",") == int(wanted) - 1 else ""
        return (
            f"{held} has {axes}, and the line takes it apart into {wanted}{named}: print its shape; unsqueeze(0) "
            "adds an axis of a batch or of channels, squeeze() removes one of size 1."
        )
    if loop := re.match(r"for .{1,80}? in (?P<over>.{1,80}?)(?::|$)", line):
        return (
            f"{loop['over']} yields {given if got else given + ' than ' + wanted} values at a time, and the loop "
            f"has {wanted} names: print(next(iter(...))), and compare it with what __getitem__ or the collate "
            "function returns."
        )
    if ".split" in line:
        return (
            f"{wanted} parts are expected of what is split, and it has {given if got else given + ' than that'}: "
            "print the line; an empty last line, another separator, or a missing field are usual."
        )
    return (
        f"The right side gives {given if got else given + ' than ' + wanted} values for {wanted} names: print it "
        "once. A function that returns one thing more or less than before is the usual reason."
    )


def _attribute(crash: CrashFacts, message: str, line: str) -> str | None:
    if re.fullmatch(r"[A-Za-z_]\w{0,60}", message) and (said := _member_of(crash, message)):
        return said
    in_python_2 = re.search(r"'module' object has no attribute '(?P<name>\w+)'", message)
    found = re.search(r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'", message) or in_python_2
    if found is not None:
        held = expression_before(line, rf"\.{found['name']}\b") or "the module"
        module = module_of(held) if in_python_2 else found["module"]
        if in_python_2 and held == "the module":
            return (
                f"A module was imported, and has no {found['name']}: it is another release than the code was "
                f"written for, "
                "or a file of yours with the same name was found first. The line that asks for it names the "
                "module."
            )
        shown = held if in_python_2 else module
        return (
            f"{module} was imported, and has no {found['name']}: it is another release than the code was written "
            f"for, or another file or folder called {module.split('.')[-1]} was found first. "
            f"print({shown}.__file__) tells which one it is."
        )
    found = re.search(
        r"(?<![\w.])'?(?P<owner>[\w.]+)'? object has (?:no|not)(?: an?)? attribute '?(?P<name>\w+)", message
    )
    if found is None:
        return None
    owner, name = found["owner"], found["name"]
    if owner in ("Tensor", "Variable", "Parameter", "Adam", "AdamW", "SGD") and name in entries("misspelt"):
        return f"{name} is misspelt: {entries('misspelt')[name]}."
    if owner in ("Tensor", "Variable", "Parameter"):
        return f"A tensor has no {name}: another object was expected there, or it came with a later release."
    if any(re.search(r"torch[\\/]nn[\\/]modules[\\/]module\.py$", frame.file) for frame in crash.frames[-1:]):
        return (
            f"{owner} is a Module that has no {name}: its __init__ does not set it (misspelt, in a branch, or "
            "after the first use), or what asks for it was written for another class or release."
        )
    if package := library_of(crash):
        return (
            f"{owner} has no {name}, and {package} itself asks for it: {owner} is of another release than this "
            f"{package} expects, or not what {package} takes there. python -m pip show {package}, and the package "
            f"that {owner} is from."
        )
    return (
        f"{owner} has no {name}. Of a class of your own: it is misspelt, or set in a part that did not run. Of a "
        "library's: the installed release has another name for it, or the object is of another kind than expected."
    )


def _index(found: re.Match[str], line: str) -> str:
    if "sys.argv" in line:
        return "The script was called with fewer arguments than it reads from sys.argv."
    if found[0].startswith("tuple") and not line:
        return (
            "A tuple has fewer parts than that. Of x.shape[i] or x.size(): the tensor has fewer axes, or rows "
            "of different lengths became one array of objects. Of a model's outputs[i]: this release returns "
            "fewer, hidden states and attentions only where they are asked for. The line tells which: print it, "
            "and len(...) of what is indexed."
        )
    if found[0].startswith("tuple") and re.search(r"\.shape\b|\.size\(\)|^$", line):
        shaped = expression_before(line, r"\.(?:shape\b|size\(\))") or "What shape or size() is asked of"
        return (
            f"{shaped} has fewer axes than the line asks for: print its shape. Where rows of different length are "
            "joined into one array (a smaller last batch), NumPy makes an array of objects with one axis."
        )
    short = indexed(line)
    if any(".split(" in held for held in short) or (not short and ".split(" in line):
        return (
            "A line or name has fewer parts than are taken from it: print what is split, an empty last line too."
        )
    held = next(iter(short)) if len(short) == 1 else expression_before(line, r"\[")
    return (
        f"{held or 'The list'} has fewer entries than that, perhaps none: print its length. A folder or pattern "
        "that matches no file gives an empty list."
    )


def _divided(found: re.Match[str], line: str) -> str | None:
    by = re.search(r"(?://?|%)\s*(?P<by>len\([^()]{1,60}\)|[A-Za-z_][\w.]*)", line)
    what = by["by"] if by else "The divisor"
    return (
        f"{what} is 0: most often nothing was loaded or counted. Print how many files, rows or batches there are."
    )


def _undefined(found: re.Match[str], line: str) -> str:
    name = found["name"]
    if (successor := entries("python_2").get(name)) is not None:
        return f"{name} is of Python 2; Python 3 has {successor}. The code was written for Python 2."
    if (statement := entries("imports").get(name)) is not None:
        return f"The import is missing, or its notebook cell was not run: {statement}"
    if name == "_C":
        return "The package's compiled part is missing: build it for this PyTorch, by the commands of its README."
    return (
        f"{name} had no value when the line ran: it is misspelt, not imported, or the notebook cell that sets it "
        "was not run since the kernel started."
    )


def _condition(found: re.Match[str], line: str) -> str | None:
    return condition_of(line or found.string)


def _callable(found: re.Match[str], line: str) -> str | None:
    got = found["got"]
    if got in ("list", "tuple", "dict", "str", "int", "float", "bool", "numpy.ndarray", "set"):
        held = expression_before(line, r"\(") or "The name"
        return (
            f"{held} is {'an' if got == 'int' else 'a'} {got} and is called with brackets: a variable hides a "
            "function of that name, an operator or comma is missing before the bracket, or a property is called."
        )
    return None


def _keyword(found: re.Match[str], line: str) -> str:
    call, name = found["call"] or "__init__", found["name"]
    what = "The class that is made there" if call.endswith("__init__") else f"{call}()"
    return (
        f"{what} takes no argument {name}. If it is a library's, the installed version does not know it (yet, or "
        "any more): see that version's documentation. If it is your own, its definition lacks it."
    )


_HOOK = re.compile(
    r"(?:training|validation|test|predict)_(?:step|step_end|epoch_end|end)|on_\w+|optimizer_step|compute_loss|log|collate_fn"
    r"|prediction_step|lr_scheduler_step|configure_gradient_clipping|train_step|test_step"
)
_TAKES = re.compile(
    r"\b(?P<call>\w+)\(\) takes (?:at most |exactly |from )?(?P<least>\d{1,3})(?: to (?P<most>\d{1,3}))? "
    r"(?:positional )?arguments? (?:but |\()(?P<given>\d{1,3})"
)


def _too_many(message: str, line: str) -> str:
    """Say of a call with a wrong number of arguments which side may be the older one."""
    if (of_call := arguments_of_environment(message, line)) is not None:
        return of_call
    counted = _TAKES.search(message)
    if counted is None:
        return "Compare the call with the definition: a method counts self, and releases differ in what they take."
    call, given, most = counted["call"], int(counted["given"]), int(counted["most"] or counted["least"])
    what = "The class that is made there" if call == "__init__" else f"{call}()"
    of_self = " If it is defined in a class, its definition may lack self." if given == most + 1 else ""
    return (
        f"{what} takes {most} arguments and is given {given}; in a method self counts as one.{of_self} Of a "
        f"library's: "
        f"in this release the last ones are passed by name alone, or were taken away or added. Compare the "
        f"line with "
        f"help({call if call != '__init__' else 'the class'}), and leave out or name the argument that is "
        f"too many."
    )


def _count(found: re.Match[str], line: str) -> str:
    missing = re.search(r"\b(?P<call>\w+)\(\) missing \d+ required [\w-]+ \w+: (?P<of>.+)", found.string)
    if missing is None:
        return _too_many(found.string, line)
    call, names = missing["call"], missing["of"][:200].strip('`"* .')
    if _HOOK.fullmatch(call):
        return (
            f"{call}() is called by the library, and not by a line of yours: its definition takes {names}, "
            f"which this "
            "release does not pass. Take it out of the definition, or give it a default; the library's page of "
            "that method names what is passed."
        )
    what = "The class that is made there" if call == "__init__" else f"{call}()"
    them = "them" if " and " in names else "it"
    return (
        f"{what} needs {names}, and the call leaves {them} out: pass {them}, or define a default. Where one "
        "project brings both, they are of different revisions; a method that is called on the class counts self "
        "as the first."
    )


_OUT_OF_RANGE = re.compile(r"^(?:list|tuple|string|pop) ?\w* (?:index )?out of range")
_TOLD: tuple[tuple[tuple[str, ...], re.Pattern[str], Callable[[re.Match[str], str], str | None]], ...] = (
    (("AttributeError",), re.compile(r"'NoneType' object has no attribute '(?P<name>\w+)'"), none),
    (
        ("TypeError",),
        re.compile(
            r"'NoneType' object is not (?P<used>subscriptable|iterable|callable)"
            r"|cannot unpack non-iterable NoneType"
            r"|object of type 'NoneType' has no len|argument of type 'NoneType' is not iterable"
            r"|unsupported operand type\(s\) for [^\n]{1,20}: (?:'NoneType' and|'\w+' and 'NoneType')"
        ),
        none_used,
    ),
    (
        ("TypeError",),
        re.compile(
            r"'[<>]=?' not supported between instances of "
            r"(?:(?P<first>'NoneType') and '\w+'|'\w+' and 'NoneType')"
        ),
        none_compared,
    ),
    (
        ("ValueError",),
        re.compile(
            r"(?P<way>too many|not enough) values to unpack \(expected (?:at least )?(?P<wanted>\d{1,9})"
            r"(?:, got (?P<got>\d{1,9}))?\)"
        ),
        _unpacked,
    ),
    (("IndexError",), _OUT_OF_RANGE, _index),
    (("ZeroDivisionError",), re.compile(""), _divided),
    (
        ("UnboundLocalError",),
        re.compile(r"(?:local variable '(?P<name>\w+)' referenced|cannot access local variable '(?P<n>\w+)')"),
        lambda found, line: unset(re.search(r"'(?P<name>\w+)'", found[0]) or found, line),
    ),
    (("NameError",), re.compile(r"name '(?P<name>\w+)' is not defined"), _undefined),
    (("AssertionError",), re.compile(r"^$|^assert\b"), _condition),
    (("TypeError",), re.compile(r"^'(?P<got>[\w.]+)' object is not callable"), _callable),
    (
        ("TypeError",),
        re.compile(r"(?:(?P<call>[\w.]{1,200})\(\) |^)[Gg]ot an unexpected keyword argument '(?P<name>\w+)'"),
        _keyword,
    ),
    (("TypeError",), re.compile(r"missing \d+ required|takes (?:from )?\d+ (?:to \d+ )?positional"), _count),
    (("ImportError",), re.compile(r"cannot import name '?(?P<name>\w+)'?"), name_missing),
    (
        ("ModuleNotFoundError", "ImportError"),
        re.compile(r"No module named '?(?P<module>[\w.]+)'?"),
        lambda found, line: pip_name(found["module"]) or module_missing(found["module"]),
    ),
)


def is_python_error(crash: CrashFacts) -> bool:
    """Whether an error is in Python's own words, of which something is known without its line."""
    return (
        crash.exception in ("TypeError", "KeyError", "AttributeError", "NameError") and proved(crash) is not None
    )


def _member_of(crash: CrashFacts, name: str) -> str | None:
    """Say that an enumeration lacks a member: Python names only the member; the line before names the class."""
    frames = crash.frames
    if len(frames) < 2 or not re.search(r"(?:^|[\\/])enum\.py$", frames[-1].file):
        return None
    found = re.search(rf"(?<!\w)(?P<owner>[A-Za-z_]\w*)\.{re.escape(name)}\b", frames[-2].code or "")
    owner = "The enumeration that the line names" if found is None else found["owner"]
    return (
        f"{owner} has no member {name}: the package that defines it is of another release than this line was "
        "written for, most often an older one. python -m pip show that package, and the release that the code's "
        "requirements name."
    )
