"""Folders whose probes are found by being there."""

from pathlib import Path

import pytest

from diagnostics.collectors.keras import fit_probes, post_run
from diagnostics.collectors.keras.fit_probes import FitProbe
from diagnostics.collectors.keras.post_run import PostRunCheck
from diagnostics.collectors.keras.watch import probes
from diagnostics.collectors.keras.watch.probes import WatchProbe
from diagnostics.collectors.probe import probes_in


@pytest.mark.parametrize(
    ("folder", "base"), [(post_run, PostRunCheck), (fit_probes, FitProbe), (probes, WatchProbe)]
)
def test_each_file_adds_a_probe(folder, base):
    files = {f"{folder.__name__}.{file.stem}" for file in Path(folder.__path__[0]).glob("[!_]*.py")}
    assert {kind.__module__ for kind in probes_in(folder, base)} == files
