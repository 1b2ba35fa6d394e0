"""What Python's own words prove by themselves, where the line that raised them adds nothing."""

from __future__ import annotations

import re

SENTENCES: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (
        ("TypeError",),
        re.compile(
            r"unsupported operand type\(s\) for \|: '(?:type|_GenericAlias|\w*Meta)?'? ?and '?(?:NoneType|type)"
        ),
        "int | None in an annotation needs Python 3.10: from __future__ import annotations, or typing.Optional.",
    ),
    (
        ("TypeError",),
        re.compile(
            r"object of type '(?P<got>int|float|bool|numpy\.\w+)' has no len\(\)|(?:'(?P<one>int"
            r"|float|bool)' object is not"
            r"|cannot unpack non-iterable (?P<other>int|float|bool)) ?(?:object|subscriptable|iterable)"
        ),
        "A single number stands where several values are expected: a list of one, a row and not its field, or "
        "what a function returns now and no longer returns as a tuple. print(type(x)) just before.",
    ),
    (
        ("TypeError",),
        re.compile(r"unhashable type: '(?P<got>[\w.]+)'"),
        "A value of type {got} is used as a key, in a set, or as an index of a dict: tuple(x) for a list, "
        "x.item() for an array of one number, and df.iloc for rows of a table.",
    ),
    (
        ("TypeError",),
        re.compile(r"float\(\) argument must be a string or a (?:real )?number, not '(?P<got>\w+)'"),
        "A value of type {got} stands among numbers: an empty field, a missing label, or a list in a column of "
        "numbers. Print the rows that have one.",
    ),
    (
        ("TypeError",),
        re.compile(
            r"unsupported operand type\(s\) for (?P<op>[^:\n]{1,20}): '(?P<one>(?!NoneType)[\w.]{1,60})' and "
            r"'(?P<other>(?!NoneType)[\w.]{1,60})'"
        ),
        "{op} is not defined for values of type {one} and {other}: print(type(x)) of both. torch.as_tensor(x) "
        "or np.asarray(x) for a list, int(x) or float(x) for what was read as text, the part that is meant of a "
        "tuple or dict, and brackets behind a function.",
    ),
    (
        ("TypeError",),
        re.compile(r"can only concatenate (?P<one>\w+) \(not [\"'](?P<other>[\w.]+)[\"']\) to"),
        "A value of type {other} is added to one of type {one}: str(x) for a message or path, int(x) or "
        "float(x) for what was read as text.",
    ),
    (
        ("ValueError",),
        re.compile(r"^None is not in (?:list|tuple)"),
        "What is looked for is None: a token that the tokenizer does not have (tokenizer.cls_token_id of a GPT or "
        "Reformer), a setting that was not given, or a name that a table lacks. Print it before the line.",
    ),
    (
        ("ValueError",),
        re.compile(r"^(?P<text>.{1,80}?) is not in (?:list|tuple)"),
        "{text} stands in the data, and the list of classes or names lacks it: add it there, or look for blanks "
        "and capitals.",
    ),
    (
        ("ValueError",),
        re.compile(r"mutable default <class '[\w.]+'> for field (?P<name>\w+) is not allowed"),
        "Since Python 3.11 a dataclass refuses such a default: the package is older than this Python. "
        "field(default_factory=...) for {name}, a newer release of the package, or Python 3.10.",
    ),
    (
        ("TypeError",),
        re.compile(
            r"^(?:string|list|tuple) indices must be integers[^\n]{0,20}, not (?P<got>NoneType|tuple|list|Tensor)"
        ),
        "A list or tuple is indexed as an array is, with a {got}: np.asarray(x) or torch.tensor(x) first, or one "
        "plain number as index.",
    ),
    (
        ("TypeError",),
        re.compile(r"^(?:string|list|tuple) indices must be integers"),
        "What is indexed by a name is no dict: a loop over a dict gives its keys, a batch may be a list of "
        "rows, and a file's JSON may be a list. print(type(x)) just before.",
    ),
    (
        ("TypeError",),
        re.compile(r"'float' object cannot be interpreted as an integer|slice indices must be integers"),
        "A size or index is a float: // in place of /, or int(...).",
    ),
    (
        ("TypeError",),
        re.compile(
            r"not supported between instances of '(?P<one>(?!NoneType)\w+)' and '(?P<other>(?!NoneType)\w+)'"
        ),
        "A {one} is compared with a {other}: an argument without type=, or a number written as text in a "
        "configuration (1e-4 is text in YAML, 1.0e-4 a number).",
    ),
    (
        ("TypeError",),
        re.compile(r"expected str, bytes or os\.PathLike object, not (?P<got>\w+)"),
        "A path is a {got}: the argument or the configuration does not set it.",
    ),
    (
        ("TypeError",),
        re.compile(r"Object of type (?P<got>[\w.]+) is not JSON serializable"),
        "A value of type {got} is written as JSON, which takes Python's own types: float(x), x.item() or "
        "x.tolist(). Where a Trainer writes its state or a configuration, compute_metrics or model.config holds "
        "it.",
    ),
    (
        ("TypeError",),
        re.compile(r"^type (?P<got>[\w.]+) doesn't define __(?P<what>\w+)__ method"),
        "{what}() is given a {got}: float(x) for what was read as text.",
    ),
    (
        ("ValueError",),
        re.compile(
            r"could not convert string to float: (?P<text>.{1,60})"
            r"|invalid literal for int\(\).{0,30}: (?P<int>.{1,60})"
        ),
        "A text that is no number stands in a column of numbers: a header, an empty cell, an id, or a class "
        "name. pandas: df.dtypes, and select or encode the columns before training.",
    ),
    (
        ("UnicodeDecodeError",),
        re.compile("codec can't decode"),
        'open(path, encoding="utf-8"), or the encoding that the file has; a binary file opened as text fails '
        "like this, too.",
    ),
    (
        ("JSONDecodeError",),
        re.compile(r"Expecting value: line 1 column 1"),
        "The text is empty or no JSON at all: a page of an error in place of the file, or another file.",
    ),
    (
        ("JSONDecodeError",),
        re.compile(r"Extra data"),
        "The file holds several JSON values, one a line (JSON Lines): read it line by line.",
    ),
    (
        ("SyntaxError",),
        re.compile(r"Missing parentheses in call to 'print'"),
        "The code was written for Python 2.",
    ),
    (
        ("ValueError",),
        re.compile(r"^(?P<what>max|min)\(\) (?:arg|iterable argument) is an? empty"),
        "{what}() is asked of an empty list: nothing was found, read or kept. Under DeepSpeed's ZeRO 3 the "
        "optimizer holds no parameter that is trained.",
    ),
    (
        ("StopIteration",),
        re.compile(r""),
        "next() was asked of something that has no more: an empty dataset or folder, a generator that ends where "
        "it should start over (while True:), or one that a release of Keras before 2.1.2 lost to its workers.",
    ),
    (
        ("RecursionError",),
        re.compile(r"maximum recursion depth exceeded"),
        "Something holds or calls itself: super().__init__(self) in a layer or module (self is passed already), "
        "__getattr__ that asks for an attribute that is not set yet, a model that is an attribute of its own "
        "part, or a copy of a very long chain.",
    ),
    (
        ("PermissionError",),
        re.compile(r"(?P<path>'\w:[^'\n]{1,200}[\\/]te?mp[\\/][^'\n]{1,120}')", re.I),
        "{path} is a temporary file. On Windows one that is still open cannot be opened a second time, also not "
        "by an administrator: a package that reads its configuration by way of NamedTemporaryFile needs "
        "delete=False there, or a release in which that is mended.",
    ),
    (
        ("PermissionError",),
        re.compile(r"Permission denied: (?P<path>'[^'\n]{1,300}')"),
        "{path} may not be read or written by this user. A default of the author's machine (--save_dir, a path "
        "in the configuration) is the usual reason: pass a folder of yours. Otherwise ls -ld shows whose it is; "
        "a folder in place of a file, and a file that another program holds open on Windows, are refused like "
        "this, too.",
    ),
    (
        ("FileNotFoundError",),
        re.compile(
            r"No such file or directory: (?P<path>'datasets/(?P<set>coco|lvis|cityscapes|ADEChallengeData2016"
            r"|VOC20\d\d)/[^'\n]{1,200}')"
        ),
        "{path} is where detectron2 keeps its own {set}, under DETECTRON2_DATASETS, or the folder in which the "
        "program was started. If it trains on another dataset: its registered name belongs into DATASETS.TRAIN "
        "and DATASETS.TEST of the configuration, which still name {set}.",
    ),
    (
        ("FileNotFoundError",),
        re.compile(r"No such file or directory: (?P<path>'(?![/\\]|\w:)[^'\n]{1,200}')"),
        "{path} is looked for from the folder in which the program was started: print(os.getcwd()).",
    ),
)
"""Exceptions, a pattern for the message, and what is to be said; a group of the pattern stands in braces."""
