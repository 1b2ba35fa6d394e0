"""Recognises that a library's own object refuses the settings that it is made of, by the line that raised it.

A check in the `__init__` of a layer, an optimizer, a trainer or a configuration is about its arguments. No row of
the table has to know its words.
"""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash.known import KnownFailure

MOST_SAID = 220  # characters of the message in the cause

_MAKING = ("__init__", "__post_init__")
_CHECKS = ("ValueError", "TypeError", "AssertionError", "NotImplementedError", "MisconfigurationException")
_RAISES = re.compile(r"^(?:raise|assert)\b")
_MADE_OF_SETTINGS = re.compile(
    r"^(?:"
    r"torch/(?:nn/modules|nn/parallel|optim|amp|cuda/amp|distributed/fsdp|utils/data/(?:dataloader|sampler|distributed))\b"
    r"|(?:tf_keras|keras)(?:/src|/api)?/(?:layers|optimizers|losses|metrics|callbacks|initializers|regularizers)/"
    r"|transformers/(?:trainer\w*|training_args\w*|optimization|configuration_utils|data/data_collator"
    r"|generation/configuration_utils|utils/quantization_config|models/\w+/(?:configuration|modeling)_\w+)\.py"
    r"|(?:trl|peft|accelerate|pytorch_lightning|lightning|lightning_fabric|torchmetrics|deepspeed|skorch"
    r"|sentence_transformers/(?:losses|models|evaluation)|timm/(?:models|layers|loss|optim|scheduler)"
    r"|monai/(?:networks|losses|metrics|transforms)|diffusers/(?:models|schedulers)|torch_geometric/nn)/"
    r")"
)
"""What is made of numbers and names alone: not datasets and tokenizers, which refuse the files that they read."""
_OF_ELSE = re.compile(r"\binstall|\bupgrade|\brequires? (?:\w+ )?[><=]=|\bversions?\b|not found|No such file")


def refused(crash: Crash) -> KnownFailure | None:
    """Recognise a check in the code that makes an object of a library; None if it is anything else."""
    last = crash.facts.frames[-1] if crash.facts.frames else None
    if last is None or last.yours or last.function not in _MAKING or crash.facts.exception not in _CHECKS:
        return None
    file = last.file.replace("\\", "/")
    said = " ".join(crash.facts.message.split())[:MOST_SAID]
    if not said or _OF_ELSE.search(said) or not _MADE_OF_SETTINGS.match(file):
        return None
    if not _RAISES.match((last.code or "").strip()):
        return None
    library = file.split("/")[0]
    where = "" if crash.facts.where is None else f", at {crash.facts.where}"
    return KnownFailure(
        "unusable-setting",
        f"{library} refuses a setting while it makes an object of it{where}. It says: {said}",
        (
            "change the argument that the message names, where that line, or the configuration behind it, sets it",
            f"python -m pip show {library}, if the code was written for another release",
        ),
        said,
    )
