"""A notebook left open: it keeps what it has, says what it prints, and ends with whoever opened it."""

import signal
import sys
import time

import pytest

from tests.zoo.lab.processes import said, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")


class TestOpenNotebook:
    def test_it_keeps_what_it_has_until_it_is_closed(self, card):
        program = (
            "from bugs import lab; from bugs.lab.shared_card import open_card\n"
            "cells = 'from bugs.lab.shared_card import *; open_card().hold(9, \"PyTorch\")'\n"
            "notebook = lab.open_notebook(cells)\n"
            "before = open_card().holders()[0].size; notebook.close(); notebook.close()\n"
            "print(f'[{before}, {len(open_card().holders())}]')"
        )
        assert said(program) == [9, 0]

    def test_what_it_prints_is_passed_on(self, card):
        process = start("from bugs import lab\nlab.open_notebook('print(1); print(2)')")
        assert process.communicate(timeout=60) == ("", "notebook: 1\nnotebook: 2\n")

    def test_cells_that_fail_are_an_error_here(self, card):
        process = start("from bugs import lab\nlab.open_notebook('int(\"x\")')")
        error = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert "ValueError: invalid literal for int() with base 10: 'x'" in error
        assert error.endswith("The notebook ended with exit code 1 before its last cell was done.\n")

    @pytest.mark.parametrize(
        "cells", ["print('waiting')", "print('busy', flush=True); import time; time.sleep(60)"]
    )
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    def test_it_ends_in_good_order_with_the_process_that_opened_it(self, card, tmp_path, cells, how):
        mark = tmp_path / "mark"
        at_exit = f"import atexit, pathlib; atexit.register(pathlib.Path({str(mark)!r}).write_text, 'ended')\n"
        process = start(
            f"from bugs import lab; import time\nlab.open_notebook({at_exit + cells!r})\ntime.sleep(60)"
        )
        assert process.stderr.readline() in ("notebook: waiting\n", "notebook: busy\n")
        process.send_signal(how)
        process.communicate(timeout=30)
        until = time.monotonic() + 10
        while not mark.exists() and time.monotonic() < until:
            time.sleep(0.02)
        assert mark.read_text() == "ended"
