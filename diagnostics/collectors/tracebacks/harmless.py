"""Says of lines that a library logs in every run, and that people take for the cause, that they are none."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts

_HARMLESS = (
    (
        r"Unable to register cu(?:DNN|FFT|BLAS) factory: Attempting to register factory for plugin"
        r"|computation placer already registered",
        "TensorFlow (with JAX or PyTorch beside it) logs it when it starts, although it begins with E: a plugin "
        "was registered twice.",
    ),
    (
        r"Your CPU supports instructions that this TensorFlow binary was not compiled to use"
        r"|This TensorFlow binary is optimized (?:with|to)|oneDNN custom operations are on",
        "TensorFlow logs it when it starts: it says which instructions of the processor are used.",
    ),
    (
        r"Overriding (?:orig_value|allow_growth) setting because the TF_FORCE_GPU_ALLOW_GROWTH",
        "TensorFlow logs it where that variable is set, as on Colab: it takes the GPU's memory as it needs it.",
    ),
    (
        r"successful NUMA node read from SysFS had negative value|could not open file to read NUMA node",
        "TensorFlow logs it on machines without NUMA, and goes on with one node.",
    ),
    (
        r"Could not load dynamic library 'libnvinfer\w*|TF-TRT Warning: Could not find TensorRT",
        "TensorRT is not installed: only models that were converted for it need it, and training does not.",
    ),
    (
        r"Allocation of \d+ exceeds \d+% of (?:free )?system memory",
        "TensorFlow asks the machine, not the GPU, for a large piece of memory. Where the process is killed after "
        "it, memory ran out: a smaller batch, or data read in parts.",
    ),
)
_COMPILED = tuple((re.compile(words), meaning) for words, meaning in _HARMLESS)


def without_harmless(text: str) -> str:
    """Leave such lines out of a text, in which they may read like an error."""
    return "\n".join(line for line in text.split("\n") if not any(words.search(line) for words, _ in _COMPILED))


def harmless(text: str) -> CrashFacts | None:
    """Take the last such line of a text without an error, with what it means; None if it has none."""
    for line in reversed(text.splitlines()):
        for words, meaning in _COMPILED:
            if (found := words.search(line)) is not None:
                said = (
                    f"This line alone is no error. {meaning} Another message has the cause, if one is in the log."
                )
                return CrashFacts("", found[0], (), live=False, nature=said)
    return None
