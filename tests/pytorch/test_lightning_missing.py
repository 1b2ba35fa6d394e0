"""`diagnostics.LightningCallback` where Lightning is not installed, as in the zoo's environment."""

import importlib.util

import pytest

import diagnostics

HERE = any(importlib.util.find_spec(name) is not None for name in ("lightning", "pytorch_lightning"))


@pytest.mark.skipif(HERE, reason="Lightning is installed")
def test_the_callback_says_what_to_install():
    with pytest.raises(ModuleNotFoundError, match=r"^diagnostics\.LightningCallback needs Lightning"):
        _ = diagnostics.LightningCallback
