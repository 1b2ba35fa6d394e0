"""Says what an assertion that failed without a message proves, from the condition that its line shows."""

from __future__ import annotations

import re

MOST_SHOWN = 160  # characters of a condition

_NAME = r"[A-Za-z_][\w.]*(?:\[[^\[\]]{0,40}\])?"
_CALLED = rf"{_NAME}(?:\([^()]{{0,60}}\))?"
_ASSERT = re.compile(
    r"assert\b\s*(?P<what>(?:[^,()\[\]]|\((?:[^()]|\([^()]{0,60}\)){0,99}\)|\[[^\[\]]{0,99}\]){1,120})"
)
_IN_BRACKETS = re.compile(r"\((?P<what>(?:[^()]|\([^()]{0,99}\)){0,160})\)")
_SEVERAL = re.compile(r" (?:or|and) ")
_SETTING = r"(?:\w+\.)?(?:cfg|config|args|opts?|hparams|params|settings|conf|FLAGS|flags)\.[\w.]+"

_CONDITIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(condition), said)
    for condition, said in (
        (
            r"^not\b.*?(?:path\.(?:exists|isfile|isdir|lexists)\((?P<path>[^()]{1,80}(?:\([^()]{0,60}\))?)\)"
            r"|(?P<held>[\w.]{1,80})\.(?:exists|is_file|is_dir)\(\))",
            "{path}{held} is there already: another folder or name for this run, or remove what an earlier "
            "one left.",
        ),
        (
            r"path\.(?:exists|isfile|isdir|lexists)\((?P<path>[^()]{1,80}(?:\([^()]{0,60}\))?)\)"
            r"|\b(?P<held>[A-Za-z_][\w.]{0,79})\.(?:exists|is_file|is_dir|isfile|isdir)\(\)",
            "There is no file or folder {path}{held}. A relative path counts from the folder in which the "
            "program was started: print os.path.abspath({path}{held}) and os.getcwd(), and pass the full path, "
            "or start the program in the project's own folder.",
        ),
        (
            r"\bcuda\.is_available\(\)|\bcuda\.device_count\(\)|\bnum_gpus\b|\bdevice_count\b",
            "PyTorch finds no GPU, or fewer than are asked for: print(torch.version.cuda, "
            "torch.cuda.device_count()). None means a build for the CPU; nvidia-smi shows driver and GPUs, "
            "CUDA_VISIBLE_DEVICES hides them.",
        ),
        (
            r"\b__version__\b|\b(?:parse|digit|get)_version\(|\b\w{0,60}[vV]ersion\w{0,60}\b[^=<>]{0,40}[=<>]=?",
            "It compares releases: the installed one is outside of those that the code was written for. "
            "python -m pip list, and the release that its README or requirements name.",
        ),
        (
            r"^isinstance\((?P<what>[^,()]{1,80}), ?(?P<type>[\w.]{1,60}|\([\w., ]{1,60}\))",
            "{what} is of another type than the code takes ({type}): print(type({what})) just before. None, a "
            "string in place of what it names, and a class of another package or release are usual.",
        ),
        (
            r"\bisfinite\b|\bisnan\b|\bisinf\b",
            "A value is NaN or infinite: look for the first step at which it is, in the inputs, the loss or the "
            "gradients.",
        ),
        (
            r"^\(?(?P<boxes>\w{0,60}box\w{0,60})\[:, 2:\] >=? (?P=boxes)\[:, :2\]\)?\.all\(\)",
            "Boxes of {boxes} end before they begin, or are NaN, which compares false with everything: print "
            "{boxes}.isnan().any(). NaN is a training that diverged: a lower learning rate, no mixed precision, "
            "gradients clipped. Else the boxes are of another form than the code takes, as (x, y, w, h) in place "
            "of corners.",
        ),
        (
            rf"^len\((?P<one>{_CALLED})\) == len\((?P<other>{_CALLED})\)",
            "{one} and {other} belong together, and have different numbers of entries: print both lengths. An "
            "entry twice (a name, a special symbol), a file without its partner, and lists of two runs or two "
            "releases are usual.",
        ),
        (
            rf"^(?:len\((?P<held>{_CALLED})\)(?: ?(?:> ?0|!= ?0|>= ?1))?|(?P<count>{_CALLED}) ?(?:> ?0|!= ?0"
            rf"|>= ?1))$",
            "{held}{count} is empty, or 0: nothing was found, read or kept. Print the path or the filter that "
            "it is made of.",
        ),
        (
            rf"^len\((?P<held>{_CALLED})\) ?(?:==|[<>]=?) ?(?P<wanted>{_CALLED}|\d{{1,9}})$",
            "{held} has another number of entries than {wanted} asks for: print len({held}), and look what the "
            "code counts on (channels, classes, fields of a line, images of a pair).",
        ),
        (
            r"^(?P<held>(?:\w+\.)?(?:\w+_)?(?:img|image|im|mask|frame)\d?) is not None$",
            "{held} is None: the image is not at that path, or is a file that cannot be decoded; cv2.imread says "
            "nothing of either. Print the path and os.path.exists(path), and look at the folder's name that the "
            "code puts before it (train2017, val2017, images).",
        ),
        (
            rf"^(?P<held>{_CALLED}) is not None$|^(?P<bare>{_CALLED}) != None$",
            "{held}{bare} is None: an argument or setting that was not given, a file that could not be read, or "
            "a function that returned nothing.",
        ),
        (
            rf"^(?P<held>{_CALLED}) is None$|^not (?P<bare>{_CALLED})$",
            "{held}{bare} is set, and may not be in this case: leave that option out, or see which other option "
            "excludes it.",
        ),
        (
            r"^(?:False|0)$",
            "The code came to a branch that it does not provide for: the if and elif before it name the cases "
            "that it knows; print what they compare.",
        ),
        (
            rf"^(?P<held>{_CALLED})$",
            "{held} is false, 0, empty or None. Print it.",
        ),
        (
            rf"^(?P<held>{_CALLED}) not in (?P<all>{_CALLED})$",
            "{held} occurs in {all} and must not: the data was prepared in another way than this code expects "
            "(another vocabulary, other special symbols, another script), or the same name is used twice.",
        ),
        (
            rf"^(?P<held>{_CALLED}|'[^']{{1,40}}'|\"[^\"]{{1,40}}\") in (?P<all>{_CALLED}"
            rf"|[\[(][^\])]{{1,99}}[\])])$",
            "{held} is not among {all}: print both. It is misspelt, stands in the data and not in the list, or "
            "is of another release.",
        ),
        (
            rf"^(?P<one>{_CALLED}) ?% ?(?P<other>{_CALLED}|\d{{1,9}}) ?== ?0$",
            "{one} is no multiple of {other}: change one of the two.",
        ),
        (
            rf"^(?P<one>{_SETTING}) ?== ?(?P<other>{_SETTING})$",
            "Two settings must agree, and do not: {one} and {other}. Set both to one value, also where a base "
            "file that the configuration inherits from sets one of them, or leave the older one out.",
        ),
        (
            r"\.(?:shape|size\(|ndim|dim\(\)|numel\(\)|n_dim)|\b(?:height|width|channels?|in_channels|img_size)\b",
            "A shape is another than the code counts on: print both sides. The size that the model was made "
            "for, the order of the axes, and a batch's axis that is missing are usual.",
        ),
        (
            r"\.(?:min|max)\(\)|(?<![<>=!]) ?<=? ?|(?<![<>=!]) ?>=? ?",
            "A value lies outside of the range that the code takes: print it. Labels or ids that count from 1, "
            "boxes outside of the image, and empty data are usual.",
        ),
    )
)
"""What people assert, and what it means that it does not hold; the first that matches counts."""


def condition_of(line: str) -> str | None:
    """Say which condition does not hold, and what that means; None if the line shows no condition.

    Args:
        line: source of the assertion, which may go on in the next line.
    """
    checked = _ASSERT.match(line)
    if checked is None:
        return None
    what = " ".join(checked["what"].split()).strip(" \\")[:MOST_SHOWN]
    shown, inner = what, _IN_BRACKETS.fullmatch(what)
    if inner is not None:
        what = inner["what"].strip()
    if what in ("", "isinstance", "all", "any", "len", "hasattr"):  # the condition goes on in the next line
        return None
    several = _SEVERAL.search(what) is not None
    matches = ((said, pattern.search(what)) for pattern, said in _CONDITIONS if not several)
    told = next((said.format_map(_held(found)) for said, found in matches if found), "Print its parts.")
    return f"The condition does not hold: {shown}. {told}"


def _held(found: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").strip() for name, text in found.groupdict().items()}
