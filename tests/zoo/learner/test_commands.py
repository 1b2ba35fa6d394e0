"""The learner's commands on a small zoo: what they write, what they say, and that nothing is lost."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from rich.console import Console

from bugs.__main__ import _parser
from bugs.zoo.learner.attempts import Attempt
from bugs.zoo.learner.commands import Learner
from bugs.zoo.learner.display import Waiting, reasons

ATTEMPT = "attempts/04_wrong_label_count/train.py"
CHAPTER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
chapter:
  purpose: Look at rows
  stations: [dataset]
  minutes: 5
  level: first steps
  cages: []
  mystery: mystery_01
---

# Data
"""


def said(done: Any) -> dict[str, Any]:
    """The one JSON object on standard output."""
    assert done.stdout.count("\n") == 1
    values = json.loads(done.stdout)
    assert values.pop("version") == 1
    return values


def state(zoo: Any) -> dict[str, Any]:
    return json.loads((zoo.root / "attempts" / "progress.json").read_text())["cages"]["04"]


class TestTry:
    def test_the_script_is_copied_and_the_copy_named(self, zoo: Any) -> None:
        script = zoo.cage(broken='"""Train.\n\n$ python bugs/04_wrong_label_count/train.py\n"""\nprint(1)\n')
        done = zoo.bugs("try", "4")
        assert done.returncode == 0
        assert (zoo.root / ATTEMPT).read_text() == f'"""Train.\n\n$ python {ATTEMPT}\n"""\nprint(1)\n'
        assert done.stdout.splitlines() == [
            "exhibit 04  ValueError: Target N is out of bounds",
            f"yours   {ATTEMPT}",
            f"run it  python {ATTEMPT}",
            "then    fix it, and python -m bugs check 04",
            "stuck?  python -m bugs hint 04",
        ]
        assert script.read_text().count("attempts") == 0
        assert state(zoo)["begun"]

    def test_what_was_begun_is_not_overwritten(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        (zoo.root / ATTEMPT).write_text("mine\n")
        done = zoo.bugs("try", "04")
        assert "nothing was overwritten" in done.stdout
        assert (zoo.root / ATTEMPT).read_text() == "mine\n"

    def test_json(self, zoo: Any) -> None:
        zoo.cage()
        assert said(zoo.bugs("try", "04", "--json")) == {"exhibit": "04", "script": ATTEMPT, "new": True}

    def test_an_attempt_survives_a_renamed_cage(self, zoo: Any) -> None:
        zoo.cage("04_older_name")
        zoo.bugs("try", "04")
        for parent in ("bugs", "solutions"):
            (zoo.root / parent / "04_older_name").rename(zoo.root / parent / "04_newer_name")
        found = said(zoo.bugs("try", "04", "--json"))
        assert found == {"exhibit": "04", "script": "attempts/04_older_name/train.py", "new": False}


class TestPages:
    @pytest.fixture
    def with_pages(self, zoo: Any) -> Any:
        zoo.cage()
        for name in ("chapters", "mysteries"):
            (zoo.root / "book" / name).mkdir(parents=True)
        (zoo.root / "book" / "chapters" / "01_data.md").write_text("# 1 · Data\n")
        (zoo.root / "book" / "mysteries" / "mystery_09.py").write_text("print(1)\n")
        return zoo

    @pytest.mark.parametrize("installed", [True, False])
    def test_a_chapter_names_the_missing_package(
        self, monkeypatch: pytest.MonkeyPatch, capsys: Any, with_pages: Any, installed: bool
    ) -> None:
        monkeypatch.setitem(sys.modules, "notebook", None)
        if installed:
            monkeypatch.delitem(sys.modules, "notebook")
            (with_pages.root / "notebook").mkdir()
            (with_pages.root / "notebook" / "__init__.py").touch()
            monkeypatch.syspath_prepend(with_pages.root)
        install = f"{sys.executable} -m pip install notebook"
        assert Learner(with_pages.root, {}, as_json=False).try_("chapter-01") == 0
        words = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
        assert (["install", install] in words) is not installed

    @pytest.mark.parametrize(("user", "option"), [(0, ["--allow-root"]), (1000, [])])
    def test_jupyter_opens_a_chapter_for_root_too(
        self, monkeypatch: pytest.MonkeyPatch, with_pages: Any, user: int, option: list[str]
    ) -> None:
        (with_pages.root / "notebook").mkdir()
        (with_pages.root / "notebook" / "__init__.py").touch()
        monkeypatch.syspath_prepend(with_pages.root)
        monkeypatch.chdir(with_pages.root)
        monkeypatch.setattr("os.geteuid", lambda: user, raising=False)
        called: list[list[str]] = []
        monkeypatch.setattr("subprocess.call", lambda words: called.append(words) or 0)
        learner = Learner(with_pages.root, {}, as_json=False)
        learner.try_("chapter-01")
        assert learner.run("chapter-01", diagnose=False) == 0
        file = "attempts/chapter-01/chapter_01.ipynb"
        assert called == [[sys.executable, "-m", "notebook", *option, file]]

    def test_a_chapter_that_is_solved_leads_to_its_answers_and_its_mystery(self, with_pages: Any) -> None:
        book = with_pages.root / "book"
        (book / "chapters" / "01_data.md").write_text(CHAPTER)
        (book / "mysteries" / "mystery_01.py").write_text("print(1)\n")
        (book / "index.md").write_text(
            "The short path: [1](chapters/01_data.ipynb), [4](exhibits/04_labels.ipynb)\n"
        )
        with_pages.bugs("try", "chapter-01")
        done = with_pages.bugs("check", "chapter-01")
        assert done.stdout.splitlines()[1:] == [
            "",
            "The answers are on the chapter's page, folded.",
            "",
            "Next is the mystery of this chapter: a script with one bug, which the page does not name.",
            "python -m bugs try mystery-01",
            "Or, on the short path of the book's first page:",
            "python -m bugs try 04",
        ]
        assert said(with_pages.bugs("next", "--json"))["command"] == "python -m bugs try mystery-01"

    def test_a_mystery_names_the_tool_that_comes_after_a_verdict(self, with_pages: Any) -> None:
        lines = with_pages.bugs("try", "mystery-09").stdout.splitlines()
        (asked,) = [line for line in lines if line.startswith("ask the tool")]
        assert "python -m bugs run mystery-09 --mine --diagnose" in asked

    @pytest.mark.parametrize("word", ["diff", "hint"])
    def test_a_mystery_names_the_file_of_its_solution(self, with_pages: Any, word: str) -> None:
        done = with_pages.bugs(word, "mystery-09")
        assert done.returncode == 2
        assert "the solution is on its page, book/mysteries/mystery_09.md" in done.stderr


class TestReset:
    def test_without_a_terminal_it_wants_to_be_told(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        done = zoo.bugs("reset", "04")
        assert done.returncode == 2
        assert done.stderr.startswith("bugs: reset asks first, and there is no terminal to ask in: python")
        assert done.stderr.endswith(" -m bugs reset 04 --yes\n")

    def test_the_old_one_is_kept(self, zoo: Any) -> None:
        script = zoo.cage()
        zoo.bugs("try", "04")
        (zoo.root / ATTEMPT).write_text("mine\n")
        values = said(zoo.bugs("reset", "04", "--yes", "--json"))
        assert values["reset"] is True
        assert (zoo.root / values["backup"] / "train.py").read_text() == "mine\n"
        assert (zoo.root / ATTEMPT).read_text() == script.read_text()

    def test_there_is_nothing_to_begin_anew(self, zoo: Any) -> None:
        zoo.cage()
        done = zoo.bugs("reset", "04", "--yes")
        message = "bugs: there is no attempt at exhibit 04 to reset: python -m bugs try 04\n"
        assert (done.returncode, done.stderr) == (2, message)


class TestHint:
    def test_each_says_more_and_the_number_is_remembered(self, zoo: Any) -> None:
        zoo.cage()
        hints = ["Which labels are there?", "How many outputs?", "num_labels is 2 if you say nothing."]
        for number, hint in enumerate([*hints, hints[-1]], start=1):
            number = min(number, 3)
            assert said(zoo.bugs("hint", "04", "--json")) == {"exhibit": "04", "number": number, "hint": hint}
            assert state(zoo)["hints"] == number

    def test_one_that_is_asked_for_by_number(self, zoo: Any) -> None:
        zoo.cage()
        assert said(zoo.bugs("hint", "04", "3", "--json"))["number"] == 3
        assert said(zoo.bugs("hint", "04", "1", "--json"))["number"] == 1
        assert state(zoo)["hints"] == 3

    def test_where_nothing_can_be_written_it_is_given_all_the_same(self, zoo: Any) -> None:
        zoo.cage()
        (zoo.root / "attempts").write_text("a file where the folder would be")
        done = zoo.bugs("hint", "04")
        assert done.stdout.startswith("exhibit 04, hint 1 of 3: Which labels are there?")
        assert done.stderr.startswith("bugs: attempts/progress.json cannot be ")
        assert done.returncode == 0


class TestDiff:
    def test_the_attempt_is_compared_with_our_solution(self, zoo: Any) -> None:
        zoo.cage(broken="a = 1\nb = 2\nc = 3\n", repaired="a = 1\nb = 3\nc = 3\n")
        why = zoo.root / "solutions" / "04_wrong_label_count" / "why.md"
        why.write_text("# Why\n\n**What was wrong.** b.\n\n**Why this fix.** `b` is\n*three*.\n")
        zoo.bugs("try", "04")
        (zoo.root / ATTEMPT).write_text("a = 1\nb = 2.9\nc = 3\n")
        values = said(zoo.bugs("diff", "04", "--json"))
        assert values["diff"][2:] == ["@@ -1,3 +1,3 @@", " a = 1", "-b = 2.9", "+b = 3", " c = 3"]
        assert values["diff"][0] == f"--- {ATTEMPT}"
        assert values["why"] == "b is three."
        assert state(zoo)["solution_seen"] is True

    def test_without_a_reason_there_is_none(self) -> None:
        assert reasons("# Why\n\n**What was wrong.** All.\n") == ""


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_narrow_window_breaks_no_command_and_lines_end_without_blanks(zoo: Any, columns: int) -> None:
    zoo.cage()
    shown = [
        zoo.bugs(command, "04", COLUMNS=str(columns)).stdout for command in ("try", "try", "hint")
    ]  # a second one says more
    lines = "".join(shown).splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert sum(line.endswith(f"python {ATTEMPT}") for line in lines) == 2
    assert sum(line.endswith("python -m bugs check 04") for line in lines) == 2
    assert max(len(line) for line in lines if ATTEMPT not in line) <= columns


class TestProgress:
    @pytest.fixture
    def half_way(self, zoo: Any) -> Any:
        for folder in ("01_first", "04_wrong_label_count", "05_third"):
            zoo.cage(folder, title="A title of several words, so that it is long")
        (zoo.root / "attempts").mkdir()
        cages = {"04": {"begun": "x", "repaired": "y", "checks": 3, "hints": 1, "solution_seen": True}}
        cages["01"] = {"begun": "x", "checks": 1, "wrong": "rules, training"}
        (zoo.root / "attempts" / "progress.json").write_text(json.dumps({"version": 1, "cages": cages}))
        return zoo

    @pytest.mark.parametrize("columns", [40, 80, 120])
    def test_it_fits_the_window_and_needs_no_colour(self, half_way: Any, columns: int) -> None:
        done = half_way.bugs("progress", COLUMNS=str(columns))
        lines = done.stdout.splitlines()
        assert lines[0] == "1 of 3 exhibits fixed, 1 begun"
        assert lines[1].endswith(" 33%")
        assert max(map(len, lines)) <= columns
        assert "\x1b" not in done.stdout
        assert [line[:4] for line in lines if line[:1] in "✓…·" and line] == ["✓ 04", "… 01", "· 05"]
        assert "wrong: rules, training" in " ".join(done.stdout.split())
        assert done.stderr == ""

    def test_json(self, half_way: Any) -> None:
        cages = said(half_way.bugs("progress", "--json"))["cages"]
        assert {id: cage["state"] for id, cage in cages.items()} == {"04": "fixed", "01": "begun", "05": "new"}

    def test_a_damaged_file_is_told_once_and_nothing_fails(self, half_way: Any) -> None:
        (half_way.root / "attempts" / "progress.json").write_text('{"version": 1, "cag')
        done = half_way.bugs("progress")
        assert done.returncode == 0
        assert done.stderr.count("\n") == 1
        assert "kept as attempts/progress.damaged-1.json" in done.stderr

    def test_next_goes_on_with_what_was_begun(self, half_way: Any) -> None:
        assert said(half_way.bugs("next", "--json"))["command"] == "python -m bugs check 01"


class TestSurprise:
    def test_it_stays_until_a_new_one_is_wanted_and_the_old_is_kept(self, zoo: Any) -> None:
        zoo.cage(broken='"""Train.\n"""\ntotal = 0\nprint(total)\n')
        assert said(zoo.bugs("surprise", "--json"))["new"] is True
        script = zoo.root / "attempts" / "surprise" / "train.py"
        assert "04" not in script.read_text()
        assert "total" not in script.read_text()
        script.write_text("mine\n")
        assert said(zoo.bugs("surprise", "--json"))["new"] is False
        assert script.read_text() == "mine\n"
        assert "04" not in (zoo.root / "attempts" / "progress.json").read_text().split('"surprise": ')[0]
        assert said(zoo.bugs("surprise", "--new", "--json"))["new"] is True
        (backup,) = (zoo.root / "attempts" / "backups").glob("surprise_*/train.py")
        assert backup.read_text() == "mine\n"
        assert said(zoo.bugs("hint", "surprise", "--json"))["exhibit"] == "surprise"

    def test_every_command_that_it_names_is_one(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("surprise")
        lines = zoo.bugs("surprise").stdout.splitlines()
        (named,) = (line.split("python -m bugs ")[1] for line in lines if line.startswith("another "))
        assert zoo.bugs(*named.split()).returncode == 0

    def test_none_was_dealt(self, zoo: Any) -> None:
        zoo.cage()
        done = zoo.bugs("check", "surprise")
        assert (done.returncode, done.stderr) == (2, "bugs: there is no surprise yet: python -m bugs surprise\n")


def test_a_check_of_nothing_says_how_to_begin(zoo: Any) -> None:
    zoo.cage()
    for command in ("check", "watch"):
        done = zoo.bugs(command, "04")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"bugs: there is no {ATTEMPT} yet: python -m bugs try 04 makes it\n"


def test_no_more_than_a_thousand_backups_of_one_second(zoo: Any, monkeypatch) -> None:
    """Two resets within a second keep both."""
    zoo.cage()
    attempt = Attempt(zoo.root, "04_wrong_label_count")
    monkeypatch.setattr("time.strftime", lambda *_: "now")
    places = []
    for number in range(3):
        attempt.begin(f"{number}\n")
        places.append(attempt.put_aside())
    assert [place.name for place in places] == [f"04_wrong_label_count_now{end}" for end in ("", "_2", "_3")]
    assert [(place / "train.py").read_text() for place in places] == ["0\n", "1\n", "2\n"]
    assert attempt.put_aside() is None


class TestCommandsThatArePrinted:
    """They run in the terminal in which they are printed."""

    NOX = "nox -s learn --"

    def commands(self, zoo: Any, *arguments: str) -> list[list[str]]:
        done = zoo.bugs(*arguments, BUG_ZOO_COMMAND=self.NOX)
        text = done.stdout + done.stderr
        assert "python" not in text
        return [line.split(self.NOX)[1].split() for line in text.splitlines() if self.NOX in line]

    def test_under_nox_each_is_one_of_nox(self, zoo: Any) -> None:
        zoo.cage()
        printed = [("check", "04"), ("try", "04"), ("next",), ("hint", "04"), ("reset", "04"), ("surprise",)]
        named = [words for arguments in printed for words in self.commands(zoo, *arguments)]
        assert {words[0] for words in named} == {"try", "run", "check", "hint", "reset"}
        parser = _parser()
        for words in named:
            parser.parse_args(words[: words.index("makes") if "makes" in words else None])

    def test_the_attempt_runs_as_it_is_and_its_exit_code_is_passed(self, zoo: Any) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        (zoo.root / ATTEMPT).write_text("import sys\nprint(sys.argv)\nsys.exit(3)\n")
        done = zoo.bugs("run", "04", "--mine")
        assert (done.returncode, done.stdout.count("train.py")) == (3, 1)

    def test_with_nothing_to_run_it_says_how_to_begin(self, zoo: Any) -> None:
        zoo.cage()
        done = zoo.bugs("run", "04", "--mine", BUG_ZOO_COMMAND=self.NOX)
        assert done.stderr == f"bugs: there is no {ATTEMPT} yet: nox -s learn -- try 04 makes it\n"


def test_a_surprise_from_when_it_was_called_a_mystery_goes_on(zoo: Any) -> None:
    zoo.cage()
    zoo.bugs("surprise")
    attempts = zoo.root / "attempts"
    (attempts / "surprise" / "train.py").write_text("mine\n")
    (attempts / "surprise").rename(attempts / "mystery")
    file = attempts / "progress.json"
    file.write_text(file.read_text().replace("surprise", "mystery"))
    assert said(zoo.bugs("surprise", "--json"))["new"] is False
    assert (attempts / "surprise" / "train.py").read_text() == "mine\n"


class TestFile:
    def test_another_file_is_checked_and_nothing_remembered(self, zoo: Any) -> None:
        zoo.cage()
        handed_in = zoo.root / "handed_in.py"
        handed_in.write_text('import os\nSEED = os.environ["ZOO_SEED"]\nprint("eval_accuracy=0.95")\n')
        done = zoo.bugs("check", "04", "--file", str(handed_in), "--json")
        values = said(done)
        assert (done.returncode, values["passed"], values["file"]) == (1, False, handed_in.as_posix())
        assert [line.split(":")[0] for line in values["why_not"]] == ["training", "evaluation"]
        assert not (zoo.root / "attempts").exists()

    def test_a_file_that_is_not_there(self, zoo: Any) -> None:
        zoo.cage()
        done = zoo.bugs("check", "04", "--file", "nowhere.py")
        assert (done.returncode, done.stderr) == (2, "bugs: there is no file nowhere.py\n")


def test_a_chapter_or_mystery_that_does_not_exist(zoo: Any) -> None:
    zoo.cage()
    done = zoo.bugs("try", "chapter-05")
    assert (done.returncode, done.stderr) == (2, "bugs: there is no chapter-05; there are: none\n")


def test_the_results_of_a_class(zoo: Any) -> None:
    zoo.cage()
    for learner, cage in (
        ("anna", {"begun": "x", "repaired": "y", "checks": 3, "hints": 1, "reserved": "Another model."}),
        ("bo", {"begun": "x", "checks": 1, "wrong": "rules, training"}),
    ):
        folder = zoo.root / "class" / learner / "attempts"
        folder.mkdir(parents=True)
        text = json.dumps({"version": 1, "cages": {"04": cage, "chapter-05": {"begun": "x"}}})
        (folder / "progress.json").write_text(text)
    rows = said(zoo.bugs("export", "--results", str(zoo.root / "class")))["results"]
    assert [(row["learner"], row["id"], row["kind"], row["state"]) for row in rows] == [
        ("anna", "04", "exhibit", "passed"),
        ("anna", "chapter-05", "chapter", "begun"),
        ("bo", "04", "exhibit", "begun"),
        ("bo", "chapter-05", "chapter", "begun"),
    ]
    assert rows[0]["reservations"] == "Another model."
    assert rows[2]["why_not"] == "rules, training"
    table = zoo.bugs("export", "--results", str(zoo.root / "class"), "--format", "csv").stdout.splitlines()
    assert table[0].startswith("learner,id,kind,title,state,passed,")
    assert table[1].startswith('anna,04,exhibit,"Three labels, two outputs",passed,y,')
    done = zoo.bugs("export", "--results", str(zoo.root / "bugs"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "expected an attempts folder" in done.stderr


def test_a_progress_bar_is_shown_without_its_colours() -> None:
    """As Keras draws it in each epoch."""
    waiting = Waiting(Console(file=io.StringIO(), force_terminal=True), "running train.py")
    waiting.output("first\n\x1b[1m5/9\x1b[0m \x1b[32m━━\x1b[0m loss: 1.0\b\b".encode())
    assert waiting._progress.tasks[0].fields["last"] == "5/9 ━━ loss: 1.0"
