import os
import signal
import stat
import subprocess
import sys

import pytest

from diagnostics import Report
from diagnostics.report.whole_file import write_whole


class TestWriteWhole:
    def test_what_cannot_be_encoded_is_written_as_an_escape(self, tmp_path):
        write_whole(tmp_path / "r.txt", "a \ud800 b")
        assert (tmp_path / "r.txt").read_bytes() == b"a \\ud800 b"
        assert os.listdir(tmp_path) == ["r.txt"]

    def test_a_file_keeps_its_permissions_and_a_new_one_has_the_usual(self, tmp_path):
        old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
        old.write_text("before")
        old.chmod(0o640)
        usual.touch()
        write_whole(old, "after")
        write_whole(new, "after")
        assert (old.read_text(), stat.S_IMODE(old.stat().st_mode)) == ("after", 0o640)
        assert new.stat().st_mode == usual.stat().st_mode

    def test_a_link_goes_on_pointing_to_its_file(self, tmp_path):
        (tmp_path / "real").write_text("before")
        (tmp_path / "link").symlink_to("real")
        write_whole(tmp_path / "link", "after")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == "after"

    def test_what_is_no_ordinary_file_is_written_to(self):
        write_whole(os.devnull, "x")
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)

    def test_a_full_disk_leaves_the_file_as_it_was(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        (tmp_path / "r.txt").write_text("before")
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space"):
            write_whole(tmp_path / "r.txt", "after")
        assert (tmp_path / "r.txt").read_text() == "before"
        assert os.listdir(tmp_path) == ["r.txt"]

    @pytest.mark.parametrize(
        ("dies", "number"),
        [
            # At the eleventh byte, where Python would go on with an error.
            ("signal.signal(signal.SIGXFSZ, signal.SIG_DFL); setrlimit(RLIMIT_FSIZE, (10, 10))", signal.SIGXFSZ),
            ("os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL),
        ],
        ids=["in the middle of the text", "when the new file is complete"],
    )
    def test_a_process_that_dies_while_it_writes_leaves_the_old_file_whole(self, tmp_path, dies, number):
        (tmp_path / "r.txt").write_text("before")
        program = (
            "import os, signal\nfrom pathlib import Path\nfrom resource import *\n"
            "from diagnostics.report.whole_file import write_whole\n"
            f"setrlimit(RLIMIT_CORE, (0, 0))\n{dies}\nwrite_whole(Path('r.txt'), 'after ' * 100)\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (-number, b"")
        assert (tmp_path / "r.txt").read_text() == "before"


@pytest.mark.parametrize("ending", ["txt", "json", "html", "md"])
def test_a_report_with_a_lone_surrogate_is_saved(tmp_path, ending):
    path = Report("ran \udc80.py").save(tmp_path / f"r.{ending}")
    assert "\\udc80" in path.read_text("utf-8")
