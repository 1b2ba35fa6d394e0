"""Numbers that sentences state as results are asserted in the same section; those that are not may only get fewer.

The search has holes: a constant of the setup that happens to equal a result hides it, and so does an assert about
something else. `untied_numbers.toml` holds how many each page has. To list them, and to lower their counts:

    python tests/zoo/book/test_numbers.py 05_nan_loss
    python tests/zoo/book/test_numbers.py --write
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from book.builder.notebooks import read_source

ROOT = Path(__file__).parents[3]
COUNTS = Path(__file__).with_name("untied_numbers.toml")
PAGES = sorted(
    page for part in ("chapters", "exhibits", "mysteries") for page in (ROOT / "book" / part).glob("*_*.md")
)
NUMBER = re.compile(
    # Not within a word or another number, and not the number of a chapter, an exhibit or a version.
    r"(?<![\w.,*-])(?<!exhibit )(?<!exhibits )(?<!chapter )(?<!ln )(?<!PyTorch )(?P<number>\d[\d,]*(?:\.\d+)?)"
    r"(?:e(?P<power>[-+]?\d+))?(?P<percent>\s?%|\spercent)?(?P<unit>(?: times\b)?(?: \w+){0,2})",
    re.IGNORECASE,
)
NOUNS = (
    "accumulations?|activations?|answers?|batch(?:es)?|bytes|calls?|characters?|class(?:es)?|columns?|differences?|"
    "digits?|elements?|epochs?|errors?|events?|examples?|findings?|GB|GiB|gradients?|KiB|labels?|layers?|lines?|MB|"
    "MiB|messages?|milliseconds?|minutes?|models?|ms|operations?|pairs?|parameters?|patients?|pictures?|points?|"
    "positions?|process(?:es)?|ranks?|rates?|rows?|rules?|runs?|s|seconds?|seeds?|sentences?|steps?|tensors?|texts?|"
    "tokens?|updates?|values?|weights?|words?"
)
COUNTED = re.compile(rf" times|(?: \w+)?? (?:{NOUNS})\b")
SMALL = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
LARGE = {"twenty": 20.0, "thirty": 30.0, "fifty": 50.0, "sixty-four": 64.0, "hundred": 100.0, "thousand": 1000.0}
WORDS = {word: float(number) for number, word in enumerate(SMALL, start=2)} | LARGE
PARTS = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "eighth": 1 / 8, "tenth": 1 / 10}
RATIO = re.compile(
    rf"\b(?:(?P<times>{'|'.join(WORDS)}) times|(?P<twice>twice) (?:as|the|what)"
    rf"|(?<!few )(?P<count>{'|'.join(WORDS)}) (?:\w+ )?(?:{NOUNS})"
    rf"|(?:an?|one) (?P<part>{'|'.join(PARTS)}) of|(?:about|nearly|almost|than) (?P<half>half))\b",
    re.IGNORECASE,
)
FENCE = re.compile(r"^(`{3,}|~{3,}|\$\$).*?^\1\s*$", re.DOTALL | re.MULTILINE)
NOT_PROSE = re.compile(r"^:{3,}.*$|^:\w+:.*$|^#+ .*$|<!--.*?-->|\$[^$\n]+\$", re.MULTILINE)
CODE_SPAN = re.compile(r"(`+).+?\1", re.DOTALL)
EXERCISE = re.compile(r"^\*\*\d\.\*\* .*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)  # the paragraph of its task
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass
class Section:
    """What is between two headings of a page."""

    prose: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stated:
    """A number in a sentence: "97%" is 0.97, to two decimals. "Ten times" is a ratio, which no script sets."""

    text: str
    value: float
    decimals: int
    sentence: str
    is_ratio: bool = False

    def is_same_as(self, number: float) -> bool:
        """Return whether a number of the code, rounded as in the sentence, is the stated one."""
        return round(number, self.decimals) == round(self.value, self.decimals)


def sections(page: Path) -> list[Section]:
    """Split a page at its headings."""
    found = [Section()]
    for cell in read_source(page).cells:
        if cell.cell_type == "code":
            found[-1].code.append(cell.source)
            continue
        for number, part in enumerate(re.split(r"^(?=##+ )", FENCE.sub("", cell.source), flags=re.MULTILINE)):
            if number or part.startswith("##"):
                found.append(Section())
            found[-1].prose.append(part)
    return found


def stated(prose: str) -> Iterator[Stated]:
    """Find the numbers in text that could be results: all but single digits that count nothing, and ratios.

    Questions and the tasks of exercises are left out: they suppose numbers.
    """
    words = LINK.sub(r"\1", CODE_SPAN.sub("code", NOT_PROSE.sub("", FENCE.sub("", prose))))
    words = EXERCISE.sub("", words)
    for sentence in re.split(r"(?<=[.!?:;])\s+|(?<=[?]\*)\s+|\n\s*\n|\n(?=[-|*]|\d+\. )", words):
        whole = " ".join(sentence.split())
        if whole.rstrip("*").endswith("?"):  # a question states nothing
            continue
        for match in NUMBER.finditer(whole):
            digits = match["number"].rstrip(",").replace(",", "")
            is_count = COUNTED.match(match["unit"])
            if not (is_count or match["percent"] or "." in digits or len(digits) > 1):
                continue
            value, decimals = float(digits), len(digits.partition(".")[2])
            if match["power"]:
                value, decimals = value * 10 ** int(match["power"]), decimals - int(match["power"])
            if match["percent"]:
                value, decimals = value / 100, decimals + 2
            yield Stated(match[0].strip(), value, decimals, whole, is_ratio=match["unit"].startswith(" times"))
        for match in RATIO.finditer(whole):
            if word := match["times"] or match["count"]:
                value = WORDS[word.lower()]
            else:
                value = 2.0 if match["twice"] else PARTS[(match["part"] or match["half"]).lower()]
            yield Stated(match[0], value, 3 if value < 1 else 0, whole, is_ratio=not match["count"])


def parsed(code: str) -> ast.Module:
    """Parse a cell without its magics."""
    return ast.parse("\n".join("pass" if re.match(r"[%!]", line) else line for line in code.splitlines()))


def constant(node: ast.AST) -> float | None:
    """Return the value of a number, or of a calculation with numbers alone."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp | ast.BinOp) and not any(
        isinstance(part, ast.Name | ast.Call | ast.Attribute | ast.Subscript) for part in ast.walk(node)
    ):
        try:
            return float(eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}))  # type: ignore[arg-type]
        except (ArithmeticError, TypeError, ValueError):
            return None
    return None


def numbers(node: ast.AST) -> Iterator[float]:
    """Find the numbers in code, those in its texts included."""
    for part in ast.walk(node):
        if (value := constant(part)) is not None:
            yield value
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from (one.value for one in stated(part.value))
            yield from (float(digits) for digits in re.findall(r"\d+\.?\d*(?:e-?\d+)?", part.value))


def asserts(code: list[str]) -> list[ast.Assert]:
    """Return the asserts of cells."""
    return [node for cell in code for node in ast.walk(parsed(cell)) if isinstance(node, ast.Assert)]


def is_tied(number: Stated, asserted: list[ast.Assert]) -> bool:
    """Return whether an assert mentions a number, or has it between two bounds that are at most that far apart."""
    for node in asserted:
        if any(number.is_same_as(one) for one in numbers(node.test)):
            return True
        for comparison in (part for part in ast.walk(node.test) if isinstance(part, ast.Compare)):
            sides = [constant(side) for side in (comparison.left, *comparison.comparators)]
            bounds = sorted(side for side in sides if side is not None)
            if len(bounds) > 1 and bounds[0] <= number.value <= bounds[-1] <= bounds[0] + abs(number.value):
                return True
    return False


def constants_of_the_setup(page: Path, cells: list[str]) -> list[float]:
    """Return the numbers that a page's code and scripts set outside of asserts, and the lengths of its lists."""
    scripts = [*(ROOT / "bugs" / page.stem).glob("train.py"), *(ROOT / "solutions" / page.stem).glob("train.py")]
    scripts += page.parent.glob(f"{page.stem}.py")
    found = []
    for code in (*cells, *(script.read_text("utf-8") for script in scripts)):
        tree = parsed(code)
        for node in ast.walk(tree):
            for name, value in ast.iter_fields(node):  # leave out asserts
                if isinstance(value, list):
                    setattr(node, name, [part for part in value if not isinstance(part, ast.Assert)])
        for node in ast.walk(tree):
            if (value := constant(node)) is not None:
                found.append(value)
            elif isinstance(node, ast.Tuple | ast.List | ast.Set):
                found.append(float(len(node.elts)))
            elif isinstance(node, ast.Dict):
                found.append(float(len(node.keys)))
    return found


def untied(page: Path) -> list[Stated]:
    """Return the numbers that a page states and no assert of the same section mentions.

    The opening of a page may state what any of its sections asserts.
    """
    parts = sections(page)
    every_cell = [cell for part in parts for cell in part.code]
    setup = constants_of_the_setup(page, every_cell)
    found = []
    for place, part in enumerate(parts):
        asserted = asserts(every_cell if place == 0 else part.code)
        found += [
            number
            for prose in part.prose
            for number in stated(prose)
            if not is_tied(number, asserted)
            and (number.is_ratio or not any(number.is_same_as(one) for one in setup))
        ]
    return found


def counted() -> dict[str, int]:
    """Return how many numbers of each page are tied to nothing, by "folder/page"."""
    counts = {f"{page.parent.name}/{page.stem}": len(untied(page)) for page in PAGES}
    return {page: count for page, count in counts.items() if count}


def test_no_page_states_more_numbers_that_nothing_asserts() -> None:
    allowed = tomllib.loads(COUNTS.read_text("utf-8"))
    counts = counted()
    more = {page: (count, allowed.get(page, 0)) for page, count in counts.items() if count > allowed.get(page, 0)}
    assert not more, "assert these numbers, or leave them out: python tests/zoo/book/test_numbers.py PAGE"
    fewer = {page: count for page, count in allowed.items() if counts.get(page, 0) < count}
    assert not fewer, "well done; now run python tests/zoo/book/test_numbers.py --write"


def write_page(folder: Path, prose: str, *cells: str) -> Path:
    """Write a page with one section."""
    header = (
        "---\nkernelspec: {display_name: Python 3, language: python, name: python3}\n---\n\n# Page\n\n## Part\n"
    )
    code = [f"```{{code-cell}} ipython3\n{cell}\n```" for cell in cells]
    page = folder / "01_page.md"
    page.write_text("\n\n".join([header, prose, *code, ""]), "utf-8")
    return page


@pytest.mark.parametrize(
    ("prose", "number"),
    [
        ("It reads 0.97 of the digits.", "0.97"),
        ("It reads [97% of](x.md) the digits.", "97%"),
        ("It stops after 4 steps.", "4 steps"),
        ("Six learning rates are compared.", "Six learning rates"),
        ("It takes 1,437 and no more.", "1,437"),
        ("The error is ten times as large.", "ten times"),
        ("It needs twice the memory.", "twice the"),
    ],
)
def test_finds_a_number_that_nothing_asserts(tmp_path: Path, prose: str, number: str) -> None:
    (found,) = untied(write_page(tmp_path, prose, "print(1)"))
    assert found.text.startswith(number)


@pytest.mark.parametrize(
    ("prose", "code"),
    [
        ("It reads 0.97 of the digits.", "assert round(accuracy, 2) == 0.97"),
        ("It reads 97% of the digits.", "assert abs(accuracy - 0.972) < 0.01"),
        ("It reads 97% of the digits.", "assert 0.95 < accuracy < 0.99"),
        ("It stops after 4 steps.", "assert steps == 4"),
        ("It takes 65,504 and no more.", "assert '65,504 is the largest' in report"),
        ("The error is ten times as large.", "assert before > 10 * after"),
        ("It needs twice the memory.", "assert 1.9 < needed / had < 2.1"),
        ("Six learning rates are compared.", "rates = [1, 2, 3, 4, 5, 7]"),
        ("With a rate of 0.01 it learns.", "optimizer = SGD(model.parameters(), lr=0.01)"),
        ("See exhibit 14, and chapter 11.", "print(1)"),
        ("How long do 300 steps take?", "print(1)"),
        ("**1.** A colleague trains for 300 steps.", "print(1)"),
        ("The code `x[300]` is code.", "print(1)"),
    ],
)
def test_leaves_out_what_is_asserted_or_states_nothing(tmp_path: Path, prose: str, code: str) -> None:
    assert untied(write_page(tmp_path, prose, code)) == []


@pytest.mark.parametrize(
    ("prose", "code"),
    [
        ("It reads 0.97 of the digits.", "assert accuracy > 0.9"),
        ("It reads 0.97 of the digits.", "assert 0.2 < accuracy < 5"),
        ("It is ten times as large.", "rate = 10"),
    ],
)
def test_weak_bounds_and_constants_tie_no_result(tmp_path: Path, prose: str, code: str) -> None:
    assert len(untied(write_page(tmp_path, prose, code))) == 1


def test_an_assert_of_another_section_does_not_count(tmp_path: Path) -> None:
    page = write_page(tmp_path, "It stops after 4 steps.\n\n## Other", "assert steps == 4")
    assert [number.text for number in untied(page)] == ["4 steps"]


if __name__ == "__main__":
    chosen = [page for page in PAGES if any(word in str(page) for word in sys.argv[1:])]
    for page in chosen:
        for number in untied(page):
            print(f"{page.stem}: {number.text}: {number.sentence}")
    if "--write" in sys.argv:
        before = tomllib.loads(COUNTS.read_text("utf-8"))
        lower = {page: min(count, before.get(page, 0)) for page, count in counted().items()}
        lines = [f'"{page}" = {count}\n' for page, count in lower.items() if count]
        COUNTS.write_text(
            "# Numbers of each page that no assert mentions; see test_numbers.py.\n" + "".join(lines), "utf-8"
        )
    print(sum(counted().values()))
