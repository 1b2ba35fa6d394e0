"""Whatever a disk refuses, a learner's command ends with one line, and the learner's text is where it says."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.catalogue import load_catalogue
from bugs.zoo.keeper.child import Ending
from bugs.zoo.learner.progress import ProgressStore
from bugs.zoo.learner.surprise import dealt_cage
from tests.zoo.keeper.conftest import BROKEN
from tests.zoo.learner.faults import Faults, Killed, bugs, injected

ATTEMPT = "attempts/04_wrong_label_count/train.py"
SURPRISE = "attempts/surprise/train.py"
MINE = "mine = 'typed by the learner'\n"
THROWN = """Traceback (most recent call last):
  File "train.py", line 1, in <module>
ValueError: something else
"""
COMMANDS = [
    ("try", "04"),
    ("try", "05"),
    ("reset", "04", "--yes"),
    ("hint", "04"),
    ("diff", "04"),
    ("check", "04"),
    ("check", "surprise"),
    ("progress",),
    ("next",),
    ("surprise",),
    ("surprise", "--new"),
]


@pytest.fixture
def no_script(monkeypatch: pytest.MonkeyPatch) -> list[Ending]:
    """Stand in for the processes of a check, and for the hashes of a thousand files around it; list what ran."""
    ran: list[Ending] = []

    def run(*_: object, **__: object) -> Ending:
        ran.append(Ending("exited", 1, 0.1, 10.0, "", THROWN))
        return ran[-1]

    monkeypatch.setattr("bugs.zoo.learner.checking.check.run_child", run)
    monkeypatch.setattr("bugs.zoo.learner.checking.check._fingerprints", lambda _: {})
    return ran


@pytest.fixture
def begun(zoo: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Make the same zoo again and again, in which the learner has changed an attempt and a surprise."""
    for id, folder in (("04", "04_wrong_label_count"), ("05", "05_other")):
        zoo.cage(folder, title=f"Exhibit {id}", broken=f'NAME = "{id}"\n{BROKEN}')
    for command in (("try", "04"), ("surprise",)):
        assert bugs(zoo.root, *command) == 0
    for shown in (ATTEMPT, SURPRISE):
        (zoo.root / shown).write_text(MINE)
    place = tmp_path_factory.mktemp("again") / "zoo"

    def again() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        return Path(shutil.copytree(zoo.root, place))

    return again


def held(root: Path) -> list[str]:
    """Where the learner's text is, from the zoo's root."""
    files = [path for path in (root / "attempts").rglob("*") if path.is_file()]
    return [path.relative_to(root).as_posix() for path in files if path.read_bytes() == MINE.encode()]


@pytest.mark.parametrize(
    ("error", "lasting"),
    [(errno.ENOSPC, True), (errno.EFBIG, False), (errno.EACCES, False)],
    ids=["ENOSPC from then on", "EFBIG once", "EACCES once"],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_access_may_fail(
    command: tuple[str, ...],
    error: int,
    lasting: bool,
    begun: Any,
    no_script: list[Ending],
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = bugs(begun(), *command)
    capsys.readouterr()
    for at in range(1, 200):
        root = begun()
        no_script.clear()
        with injected(faults := Faults(root, at, error, lasting=lasting)):
            code = bugs(root, *command)
        out, err = capsys.readouterr()
        where = f"access {at}: {out}{err}"
        assert code in (usual, 2), where
        assert "Traceback" not in out + err, where
        assert err.count("\n") <= 1, where
        if no_script:  # no check is made for nothing
            assert (code, out.count("not fixed yet")) == (usual, 1), where
        if code == 2:
            assert err.count("\n") == 1, where
            assert out == "", where
        places = held(root)
        for name in ("04_wrong_label_count", "surprise"):
            backups = [place for place in places if place.startswith(f"attempts/backups/{name}")]
            named = any(place.removesuffix("/train.py") in out + err for place in backups)
            assert named or f"attempts/{name}/train.py" in places, where
        if not faults.happened:
            assert code == usual
            return
    pytest.fail("it never came to an end")


@pytest.mark.usefixtures("no_script")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_access_may_be_the_last(command: tuple[str, ...], begun: Any) -> None:
    """A kill leaves the old or the new state, as the next command finds it."""
    dealt = dealt_to(begun())
    for at in range(1, 200):
        root = begun()
        with contextlib.suppress(Killed), injected(faults := Faults(root, at, None)):
            bugs(root, *command)
        places = held(root)
        assert len(places) == 2, at
        for id, folder in (("04", "04_wrong_label_count"), ("05", "05_other")):
            assert bugs(root, "hint", id) == 0
            script = root / "attempts" / folder / "train.py"
            whole = {(root / "bugs" / folder / "train.py").read_text()}
            if id == "04":
                whole.add(MINE)
            assert script.read_text() in whole if script.exists() or id == "04" else not script.parent.exists(), at
        if (script := root / SURPRISE).exists():
            assert dealt_to(root) == (dealt if (text := script.read_text()) == MINE else text.split('"')[1]), at
        assert bugs(root, "surprise") == 0
        assert (root / SURPRISE).is_file()
        if not faults.happened:
            return
    pytest.fail("it never came to an end")


def dealt_to(root: Path) -> str:
    """The id of the exhibit whose surprise the learner has."""
    exhibit = dealt_cage(load_catalogue(root).values(), ProgressStore(root / "attempts").read().surprise)
    assert exhibit is not None
    return exhibit.id


class TestOddFolders:
    """What stands in the way has the name of something of ours."""

    @staticmethod
    def told(root: Path, capsys: pytest.CaptureFixture[str], *command: str, code: int = 2) -> str:
        """The one line that a command ends with."""
        capsys.readouterr()
        assert bugs(root, *command) == code
        out, err = capsys.readouterr()
        assert err.count("\n") == 1
        assert code == 0 or out == ""
        return err.rstrip("\n")

    def test_reset_names_a_file_in_place_of_the_backups(self, begun: Any, capsys: Any) -> None:
        root = begun()
        (root / "attempts" / "backups").write_text("a file")
        line = self.told(root, capsys, "reset", "04", "--yes")
        assert line == f"bugs: reset failed: attempts/backups: File exists. Your version is in {ATTEMPT}."
        assert (root / ATTEMPT).read_text() == MINE

    def test_try_names_a_file_in_place_of_attempts(self, zoo: Any, capsys: Any) -> None:
        zoo.cage()
        (zoo.root / "attempts").write_text("a file")
        assert self.told(zoo.root, capsys, "try", "04") == "bugs: try failed: attempts: File exists."
        assert (zoo.root / "attempts").read_text() == "a file"

    def test_a_folder_in_place_of_the_script_is_named(self, zoo: Any, capsys: Any) -> None:
        zoo.cage()
        (zoo.root / ATTEMPT).mkdir(parents=True)
        assert self.told(zoo.root, capsys, "try", "04") == f"bugs: try failed: {ATTEMPT}: Is a directory."

    def test_a_file_in_place_of_the_attempt_is_put_aside(self, zoo: Any, capsys: Any) -> None:
        zoo.cage()
        place = (zoo.root / ATTEMPT).parent
        place.parent.mkdir()
        place.write_text(MINE)
        assert "Your version is in attempts/04_wrong_label_count." in self.told(zoo.root, capsys, "try", "04")
        assert bugs(zoo.root, "reset", "04", "--yes") == 0
        assert place.is_dir()
        (backup,) = held(zoo.root)
        assert f"the old one is kept in {backup}" in capsys.readouterr().out

    def test_a_surprise_stays_where_progress_is_a_folder(self, begun: Any, capsys: Any) -> None:
        root = begun()
        (root / "attempts" / "progress.json").unlink()
        (root / "attempts" / "progress.json").mkdir()
        for command in (("surprise",), ("surprise", "--new"), ("check", "surprise"), ("hint", "surprise")):
            line = self.told(root, capsys, *command)
            reason = "attempts/progress.json: Is a directory"
            assert line == f"bugs: {command[0]} failed: {reason}. Your version is in {SURPRISE}."
        assert (root / SURPRISE).read_text() == MINE
        assert "] Is a directory" in self.told(root, capsys, "hint", "04", code=0)
        assert "] Is a directory" in self.told(root, capsys, "reset", "04", "--yes", code=0)

    def test_a_surprise_without_progress_is_put_aside_and_named(self, begun: Any, capsys: Any) -> None:
        root = begun()
        (root / "attempts" / "progress.json").write_text("{")
        assert bugs(root, "surprise") == 0
        (backup,) = (place for place in held(root) if "surprise" in place)
        assert f"the old one is kept in {Path(backup).parent.as_posix()}" in capsys.readouterr().out

    def test_a_surprise_names_a_script_that_does_not_parse(self, zoo: Any, capsys: Any) -> None:
        zoo.cage(broken="def broken(:\n")
        line = self.told(zoo.root, capsys, "surprise")
        assert line == "bugs: surprise failed: bugs/04_wrong_label_count/train.py, line 1: invalid syntax."

    def test_an_empty_zoo_deals_no_surprise(self, zoo: Any, capsys: Any) -> None:
        (zoo.root / "bugs").mkdir()
        line = self.told(zoo.root, capsys, "surprise")
        assert line == "bugs: there are no exhibits to choose a surprise from"

    def test_an_exhibit_in_another_encoding_is_told(self, zoo: Any, capsys: Any) -> None:
        script = zoo.cage()
        script.write_bytes(b"# caf\xe9\n")
        assert self.told(zoo.root, capsys, "try", "04").startswith("bugs: try failed: 'utf-8' codec can't decode")

    def test_an_answer_that_is_no_text_changes_nothing(self, begun: Any, monkeypatch: Any) -> None:
        root = begun()
        with io.TextIOWrapper(io.BytesIO(b"\xff\n"), "utf-8") as answers:
            monkeypatch.setattr("sys.stdin", answers)
            monkeypatch.setattr(answers, "isatty", lambda: True, raising=False)
            assert bugs(root, "reset", "04") == 1
        assert ATTEMPT in held(root)

    def test_a_backup_is_named_where_there_is_no_attempt(self, begun: Any, capsys: Any) -> None:
        root = begun()
        backups = root / "attempts" / "backups"
        for name in ("2026-01-02_030405", "2026-01-02_030405_2", "2026-01-02_030405_10"):
            shutil.copytree((root / ATTEMPT).parent, backups / f"04_wrong_label_count_{name}")
        shutil.rmtree((root / ATTEMPT).parent)
        line = self.told(root, capsys, "check", "04")
        last = "attempts/backups/04_wrong_label_count_2026-01-02_030405_10/train.py"
        assert line.endswith(f"python -m bugs try 04 makes it. Your last version is in {last}.")


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit, /dev/full")
class TestFullDisk:
    def test_reset_leaves_the_attempt_where_it_is(self, begun: Any, zoo: Any) -> None:
        root = begun()
        command = 'ulimit -f 0; exec "$@"'
        zoo.root = root
        done = subprocess.run(
            ["bash", "-c", command, "bash", *zoo.command("reset", "04", "--yes")],
            capture_output=True,
            text=True,
            env=zoo.ENVIRONMENT,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("bugs: reset failed: attempts/")
        assert done.stderr.endswith(f"File too large. Your version is in {ATTEMPT}.\n")
        assert done.stderr.count("\n") == 1
        assert ATTEMPT in held(root)

    @pytest.mark.parametrize("command", [("progress",), ("list", "--json"), ("export",)], ids=" ".join)
    def test_output_that_cannot_be_written_is_told(self, zoo: Any, command: tuple[str, ...]) -> None:
        zoo.cage()
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                zoo.command(*command), stdout=full, stderr=subprocess.PIPE, text=True, env=zoo.ENVIRONMENT
            )
        assert (done.returncode, done.stderr) == (2, f"bugs: {command[0]} failed: No space left on device.\n")

    def test_a_reset_that_cannot_say_so_names_the_backup(self, begun: Any, zoo: Any) -> None:
        zoo.root = begun()
        with open("/dev/full", "w") as full:
            command = zoo.command("reset", "04", "--yes")
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=zoo.ENVIRONMENT)
        (backup,) = (place for place in held(zoo.root) if "04_" in place)
        line = f"bugs: reset failed: No space left on device. Your last version is in {Path(backup).parent}.\n"
        assert (done.returncode, done.stderr) == (2, line)


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["ascii", "cp1252", "ascii:strict"])
    def test_a_check_says_what_it_found(self, zoo: Any, encoding: str) -> None:
        zoo.cage()
        zoo.bugs("try", "04")
        done = zoo.bugs("check", "04", PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (1, "")
        assert "run: It fails as it did: ValueError: Target 2 is out of bounds" in done.stdout

    @pytest.mark.parametrize("command", [("list",), ("progress",)], ids=" ".join)
    def test_a_title_outside_the_encoding_is_shown(self, zoo: Any, command: tuple[str, ...]) -> None:
        zoo.cage(title="A naïve → title")
        done = zoo.bugs(*command, PYTHONIOENCODING="ascii")
        assert (done.returncode, done.stderr) == (0, "")

    def test_the_c_locale_breaks_no_command(self, zoo: Any) -> None:
        zoo.cage()
        values = {"version": 1, "cages": {"04": {"begun": "x", "wrong": "\ud800"}}}
        (zoo.root / "attempts").mkdir()
        (zoo.root / "attempts" / "progress.json").write_text(json.dumps(values))
        for command in (("progress",), ("next",), ("hint", "04"), ("list",)):
            done = zoo.bugs(*command, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
            assert done.returncode == 0, done.stderr
            assert done.stderr.count("\n") <= 1


@pytest.mark.parametrize(
    "values",
    [
        {"surprise": "\ud800"},
        {"surprise": "\udc80:x"},
        {"solved": ["\ud800"]},
        {"cages": {"\ud800": {"hints": 1}}},
        {"cages": {"04": {"begun": "\ud800", "wrong": "line\nline"}}},
        {"cages": {"04": {"hints": [[["deep"]]] * 100_000}}},
        {"cages": [], "solved": 1, "surprise": None, "\ud800": 1},
    ],
    ids=["surrogate", "escaped byte", "solved", "id", "field", "long", "types"],
)
def test_odd_values_of_progress_are_kept_aside(values: Any, zoo: Any, capsys: pytest.CaptureFixture[str]) -> None:
    zoo.cage()
    (zoo.root / "attempts").mkdir()
    file = zoo.root / "attempts" / "progress.json"
    file.write_text(before := json.dumps({"version": 1} | values))
    for command in (("next",), ("progress",), ("hint", "04")):
        assert bugs(zoo.root, *command) == 0
        _, err = capsys.readouterr()
        assert err.count("\n") == 1
        assert len(err) < 1_000
    assert (zoo.root / "attempts" / "progress.damaged-1.json").read_text() == before
    assert json.loads(file.read_text())["cages"]["04"]["hints"] == 1
    for command in (("surprise",), ("progress",), ("hint", "surprise")):
        assert bugs(zoo.root, *command) == 0
        assert capsys.readouterr().err == ""
