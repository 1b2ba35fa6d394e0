"""Who holds a card: this process, which has PyTorch in it."""

import getpass
import os
import sys

import psutil
import pytest
import torch  # noqa: F401  its libraries are then among those of this process

from diagnostics.collectors.system.nvml import described
from diagnostics.facts.gpu import Holder

GIB = 2**30


class TestDescribed:
    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows its processes as files")
    def test_tells_of_a_running_process(self):
        holder = described(Holder(os.getpid(), GIB))
        assert holder.user == getpass.getuser()
        assert "PyTorch" in holder.frameworks
        assert holder.command == " ".join(psutil.Process().cmdline())
