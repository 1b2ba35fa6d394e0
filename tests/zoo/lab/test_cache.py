"""Directories built once: by one process, whole or not at all."""

import os
import shutil
import subprocess
import sys
import tempfile
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
        assert sorted(path.name for path in zoo_cache.iterdir()) == ["thing-1", "thing-1.lock", "thing-1.sha256"]

    @pytest.mark.parametrize(
        ("harm", "reason"),
        [
            (lambda thing: os.truncate(thing / "data" / "rows", 3), "data/rows is not what was built"),
            (lambda thing: os.truncate(thing / "data" / "rows", 0), "data/rows is not what was built"),
            (lambda thing: (thing / "data" / "rows").write_bytes(bytes(7)), "data/rows is not what was built"),
            (lambda thing: (thing / "config").unlink(), "config is missing"),
            (lambda thing: shutil.rmtree(thing / "data"), "data/rows is missing"),
            (lambda thing: (shutil.rmtree(thing), thing.mkdir()), "config is missing"),
            (lambda thing: (shutil.rmtree(thing), thing.write_text("")), "config is missing"),
            (lambda thing: (shutil.rmtree(thing), thing.symlink_to("nowhere")), "config is missing"),
            (lambda thing: thing.with_name("thing-1.sha256").unlink(), "its build was not completed"),
            (lambda thing: os.truncate(thing.with_name("thing-1.sha256"), 0), "its record is damaged"),
            (lambda thing: os.truncate(thing.with_name("thing-1.sha256"), 80), "its record is damaged"),
            (lambda thing: thing.with_name("thing-1.sha256").write_bytes(b"\xff\xfe"), "its record is damaged"),
        ],
    )
    def test_what_was_damaged_is_built_again(self, zoo_cache, capsys, harm, reason):
        def build(directory):
            (directory / "config").write_text("{}")
            (directory / "data").mkdir()
            (directory / "data" / "rows").write_text("content")

        thing = cache.built("thing-1", "the thing", build)
        harm(thing)
        capsys.readouterr()
        assert cache.built("thing-1", "the thing", build) == thing
        said = capsys.readouterr().err
        assert said == f"Building the thing again, in {thing}: {reason}\n"
        assert ((thing / "config").read_text(), (thing / "data" / "rows").read_text()) == ("{}", "content")
        assert sorted(path.name for path in zoo_cache.iterdir()) == ["thing-1", "thing-1.lock", "thing-1.sha256"]
        cache.built("thing-1", "the thing", build)
        assert capsys.readouterr().err == ""

    def test_of_two_processes_one_repairs(self, zoo_cache, tmp_path):
        journal = tmp_path / "journal"
        start_builder(zoo_cache, journal, seconds=0).communicate(timeout=60)
        (zoo_cache / "thing-1" / "whole").write_text("")
        both = [start_builder(zoo_cache, journal, seconds=1.0) for _ in range(2)]
        assert [process.communicate(timeout=60)[0].strip() for process in both] == [str(zoo_cache / "thing-1")] * 2
        assert journal.read_text() == "built\n" * 2
        assert (zoo_cache / "thing-1" / "whole").read_text() == "written last"

    def test_what_cannot_be_read_is_named_as_the_folder_to_delete(self, zoo_cache, tmp_path):
        cache.built("thing-1", "the thing", lambda directory: (directory / "config").write_text("{}"))
        (zoo_cache / "thing-1" / "config").unlink()
        (zoo_cache / "thing-1" / "config").symlink_to("config")  # for root, too: a loop of links
        with pytest.raises(cache.LabError) as raised:
            cache.built("thing-1", "the thing", lambda directory: None)
        assert str(raised.value) == (
            f"{zoo_cache / 'thing-1'} cannot be read (Too many levels of symbolic links).\n"
            "Delete that folder and it is built again, or set the environment variable ZOO_CACHE to another place."
        )

    @pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can be somebody else")
    def test_damage_in_a_folder_of_somebody_else_is_named(self, zoo_cache):
        cache.built("thing-1", "the thing", lambda directory: (directory / "config").write_text("{}"))
        (zoo_cache / "thing-1" / "config").write_text("")
        for folder in (zoo_cache, *zoo_cache.parents[:4]):  # with pytest-xdist there is one more
            if folder != Path(tempfile.gettempdir()):
                folder.chmod(0o755)
        program = (
            "import os, filelock, rich.console\nfrom bugs.lab import cache\nos.setuid(65534)\n"
            "cache.built('thing-1', 'the thing', lambda directory: None)"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ended.stderr.splitlines()[-2:] == [
            f"{zoo_cache / 'thing-1'} is damaged and cannot be replaced (Permission denied).",
            "Delete that folder, or set the environment variable ZOO_CACHE to a directory of yours.",
        ]

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
