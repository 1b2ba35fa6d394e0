"""A checkpoint is no log."""

import pytest
import torch

from diagnostics import InvalidInput
from diagnostics.cli.log_file import read_log


def refused(file):
    with pytest.raises(InvalidInput) as raised:
        read_log(str(file))
    return str(raised.value)


class TestOtherFiles:
    def test_a_checkpoint(self, tmp_path):
        file = tmp_path / "model.pt"
        torch.save(torch.arange(500), file)
        assert refused(file) == (
            f"{file} is not a text file. diagnose explain reads printed output: a log, or a traceback that was "
            "copied into a file."
        )
