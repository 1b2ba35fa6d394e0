"""Directories built once: by one process, whole or not at all."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bugs.lab import cache

BUILDER = """
import sys, time
from pathlib import Path
from bugs.lab import cache

def build(directory: Path) -> None:
    (directory / "half").write_text("written first")
    with open(sys.argv[1], "a") as journal:
        journal.write("built\\n")
    time.sleep(float(sys.argv[2]))
    (directory / "whole").write_text("written last")

print(cache.built("thing-1", "the thing", build))
"""


def start_builder(zoo_cache: Path, journal: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that builds `thing-1`, notes it in the journal, and takes its time."""
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(journal), str(seconds)],
        env={**os.environ, "ZOO_CACHE": str(zoo_cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, seconds: float = 20) -> None:
    """Return when the file is there."""
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear within {seconds} s"
        time.sleep(0.02)


class TestRoot:
    def test_the_environment_variable_decides(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_CACHE", str(tmp_path / "here"))
        assert cache.root() == tmp_path / "here"

    def test_without_it_the_users_cache_directory_is_taken(self, monkeypatch, tmp_path):
        monkeypatch.delenv("ZOO_CACHE", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache.root().name == "bug-zoo"


class TestBuilt:
    @pytest.fixture(autouse=True)
    def zoo_cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ZOO_CACHE", str(tmp_path / "cache"))
        return tmp_path / "cache"

    def test_it_is_built_once_and_then_found_without_a_word(self, zoo_cache, capsys):
        builds = []

        def build(directory):
            builds.append(directory)
            (directory / "file").write_text("text")

        first = cache.built("thing-1", "the thing", build)
        assert f"Building the thing, once for this machine, in {zoo_cache / 'thing-1'}" in capsys.readouterr().err
        assert cache.built("thing-1", "the thing", build) == first == zoo_cache / "thing-1"
        assert (first / "file").read_text() == "text"
        assert len(builds) == 1
        assert capsys.readouterr().err == ""

    def test_another_version_is_another_directory(self):
        names = [cache.built(name, "the thing", lambda directory: None).name for name in ("thing-1", "thing-2")]
        assert names == ["thing-1", "thing-2"]

    def test_a_build_that_fails_leaves_nothing_and_may_be_tried_again(self, zoo_cache):
        def fail(directory):
            (directory / "half").write_text("half")
            raise ValueError("no luck")

        with pytest.raises(ValueError, match="no luck"):
            cache.built("thing-1", "the thing", fail)
        assert [path.name for path in zoo_cache.iterdir()] == ["thing-1.lock"]
        assert cache.built("thing-1", "the thing", lambda directory: None).is_dir()

    def test_of_two_processes_one_builds_and_the_other_says_that_it_waits(self, zoo_cache, tmp_path):
        journal = tmp_path / "journal"
        first = start_builder(zoo_cache, journal, seconds=1.5)
        wait_for(journal)
        second = start_builder(zoo_cache, journal, seconds=1.5)
        answers = [process.communicate(timeout=60) for process in (first, second)]
        assert [process.returncode for process in (first, second)] == [0, 0]
        assert [answer[0].strip() for answer in answers] == [str(zoo_cache / "thing-1")] * 2
        assert journal.read_text() == "built\n"
        assert answers[1][1] == "Another process is building the thing; waiting until it is done.\n"
        assert sorted(path.name for path in (zoo_cache / "thing-1").iterdir()) == ["half", "whole"]

    def test_a_killed_builder_leaves_nothing_that_is_taken_for_a_result(self, zoo_cache, tmp_path):
        journal = tmp_path / "journal"
        killed = start_builder(zoo_cache, journal, seconds=60)
        wait_for(journal)
        killed.kill()
        killed.communicate()
        assert not (zoo_cache / "thing-1").exists()
        assert list(zoo_cache.glob("thing-1.building-*/half"))

        after = start_builder(zoo_cache, journal, seconds=0)
        after.communicate(timeout=60)
        assert sorted(path.name for path in (zoo_cache / "thing-1").iterdir()) == ["half", "whole"]
        assert sorted(path.name for path in zoo_cache.iterdir()) == ["thing-1", "thing-1.lock"]

    def test_a_place_that_cannot_be_written_is_named_with_the_way_out(self, monkeypatch, tmp_path):
        in_the_way = tmp_path / "a file"
        in_the_way.write_text("")
        monkeypatch.setenv("ZOO_CACHE", str(in_the_way))
        with pytest.raises(cache.LabError) as raised:
            cache.built("thing-1", "the thing", lambda directory: None)
        assert str(raised.value) == (
            f"No room for the thing: {in_the_way} cannot be written (File exists).\n"
            "Set the environment variable ZOO_CACHE to a directory of yours with some 20 MB to spare."
        )

    def test_a_script_ends_with_that_message_and_no_traceback(self, tmp_path):
        in_the_way = tmp_path / "a file"
        in_the_way.write_text("")
        script = textwrap.dedent("from bugs import lab\nlab.checkpoint()")
        ended = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "ZOO_CACHE": str(in_the_way), "ZOO_MODEL": ""},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 1
        assert "Traceback" not in ended.stderr
        assert ended.stderr.startswith(f"No room for the tiny checkpoint: {in_the_way} cannot be written")
