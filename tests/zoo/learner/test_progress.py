"""What is remembered of a learner: whole after a kill, readable after an edit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bugs.zoo.learner.progress import Cage, Progress, ProgressStore, write_atomically

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path: Path) -> ProgressStore:
    return ProgressStore(tmp_path / "attempts")


class TestFile:
    def test_nothing_is_known_and_written_before_the_first_change(self, store: ProgressStore) -> None:
        assert store.read() == Progress()
        assert not store.folder.exists()

    def test_what_is_written_is_read(self, store: ProgressStore) -> None:
        store.change("05", begun="2026-11-23 10:00", original="ab", hints=2)
        store.change("05", checks=3, wrong="rules")
        store.change("06", solution_seen=True)
        assert ProgressStore(store.folder).read().cages == {
            "05": Cage("2026-11-23 10:00", "ab", 2, 3, "", False, "rules"),
            "06": Cage(solution_seen=True),
        }

    def test_a_solved_surprise_is_remembered_once(self, store: ProgressStore) -> None:
        for _ in range(2):
            store.change("surprise", "05", checks=1)
        assert store.change("surprise", "06", checks=2).solved == ("05", "06")
        assert store.read() == Progress({"surprise": Cage(checks=2)}, solved=("05", "06"))

    def test_it_is_readable_by_a_person(self, store: ProgressStore) -> None:
        store.change("05", hints=1)
        assert '"hints": 1,\n' in store.file.read_text()

    def test_nothing_else_is_left_beside_it(self, store: ProgressStore) -> None:
        store.change("05", hints=1)
        assert sorted(os.listdir(store.folder)) == [".progress.lock", "progress.json"]

    def test_a_file_that_cannot_be_replaced_stays_as_it_was(self, tmp_path: Path, monkeypatch) -> None:
        file = tmp_path / "progress.json"
        file.write_text("old")

        def fails(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="No space"):
            write_atomically(file, "new")
        assert file.read_text() == "old"
        assert os.listdir(tmp_path) == ["progress.json"]


class TestDamage:
    def test_a_half_written_file_is_kept_and_told(self, store: ProgressStore) -> None:
        store.change("05", hints=1)
        half = store.file.read_text()[:40]
        store.file.write_text(half)
        progress = store.read()
        assert progress.cages == {}
        assert progress.notes[0].startswith("attempts/progress.json cannot be read as JSON (")
        assert progress.notes[0].endswith(
            "it is kept as attempts/progress.damaged-1.json, and what could be read of it counts"
        )
        assert (store.folder / "progress.damaged-1.json").read_text() == half

    def test_the_same_damage_is_kept_once_and_another_beside_it(self, store: ProgressStore) -> None:
        store.change("05", hints=1)
        for text in ("{", "{", "[]"):
            store.file.write_text(text)
            store.read()
        assert sorted(path.name for path in store.folder.glob("progress.damaged*")) == [
            "progress.damaged-1.json",
            "progress.damaged-2.json",
        ]

    def test_what_was_edited_wrongly_is_left_out_and_the_rest_counts(self, store: ProgressStore) -> None:
        store.change("05", hints=1, checks=2)
        values = json.loads(store.file.read_text())
        values["cages"]["05"]["hints"] = "two"
        values["cages"]["06"] = 7
        store.file.write_text(json.dumps(values))
        progress = store.read()
        assert progress.cages == {"05": Cage(checks=2)}
        assert (
            "cages.05.hints: expected a whole number, 0 or above, got 'two'; cages.06: expected an"
            in (progress.notes[0])
        )

    def test_bytes_that_are_no_text_are_kept_as_they_are(self, store: ProgressStore) -> None:
        store.folder.mkdir()
        store.file.write_bytes(b"\xff\xfe{")
        assert store.read().notes
        assert (store.folder / "progress.damaged-1.json").read_bytes() == b"\xff\xfe{"

    def test_a_newer_version_is_kept_before_it_is_overwritten(self, store: ProgressStore) -> None:
        store.folder.mkdir()
        store.file.write_text('{"version": 9, "cages": {"05": {"hints": 1, "stars": 3}}}')
        assert "newer zoo (version 9)" in store.read().notes[0]
        store.change("06", hints=1)
        assert store.read().cages == {"05": Cage(hints=1), "06": Cage(hints=1)}
        assert "stars" in (store.folder / "progress.damaged-1.json").read_text()


WORK = """
import sys
from pathlib import Path

from bugs.zoo.learner.attempts import Attempt
from bugs.zoo.learner.progress import ProgressStore

root = Path(sys.argv[1])
attempt = Attempt(root, "05_nan_loss")
store = ProgressStore(root / "attempts")
print("ready", flush=True)
for number in range(1, 1_000_000):
    attempt.put_aside()
    attempt.begin("line\\n" * 5_000)
    store.change("05", checks=number, hints=number % 4, wrong=str(number))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killed_at_twenty_random_times_everything_is_whole(tmp_path: Path) -> None:
    chance, seen = random.Random(8), 0
    store = ProgressStore(tmp_path / "attempts")
    for _ in range(20):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORK, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.0, 0.06))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
        progress = store.read()
        assert progress.notes == ()
        cage = progress.of("05")
        assert (cage.wrong or "0", cage.hints) == (str(cage.checks), cage.checks % 4)
        seen += cage.checks > 0
        for script in (tmp_path / "attempts").glob("05*/train.py"):
            assert script.read_text() == "line\n" * 5_000
        for script in (tmp_path / "attempts" / "backups").glob("*/train.py"):
            assert script.read_text() == "line\n" * 5_000
    assert seen >= 10  # it was killed while it wrote, and not before
    store.change("05", checks=0)  # the lock of a dead process holds nobody up


def test_a_surprise_that_was_called_a_mystery_is_kept(tmp_path: Path) -> None:
    cage = {"begun": "2026-11-23 10:00", "checks": 2}
    (tmp_path / "progress.json").write_text(
        json.dumps({"version": 1, "cages": {"mystery": cage}, "mystery": "salt:hash", "solved": ["05"]})
    )
    progress = ProgressStore(tmp_path).read()
    assert progress == Progress({"surprise": Cage(**cage)}, "salt:hash", ("05",))
    assert progress.notes == ()
