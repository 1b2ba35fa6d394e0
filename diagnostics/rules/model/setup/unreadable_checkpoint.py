"""See `UnreadableCheckpoint`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash import setup as facts

SEEN: dict[str, tuple[str, Fix]] = {
    "weights only": (
        "Since PyTorch 2.6, torch.load reads only weights, but this file also contains other Python objects or is "
        "not a complete checkpoint.",
        (
            "torch.load(path, weights_only=False), if you trust the source of the file: it can run any code",
            "torch.serialization.add_safe_globals([Class]), for the class that the message names",
            "save model.state_dict() instead of the model",
        ),
    ),
    "custom class": (
        "The model was saved with a custom class that Keras cannot find when loading.",
        (
            'keras.models.load_model(path, custom_objects={"Name": Name})',
            "@keras.saving.register_keras_serializable() above the class, before saving and loading, with "
            "get_config()",
            "build the model in code, and model.load_weights(path)",
        ),
    ),
    "newer keras": (
        "The model was saved by a different version of Keras from the one that reads it: Keras 2 and 3 store "
        "classes under different names (keras.src.engine belongs to 2.13 to 2.15, keras.src.models to 3).",
        (
            "use the version of Keras that saved the model; for a Keras 2 model, tf_keras and "
            "TF_USE_LEGACY_KERAS=1",
            "build the model in code, and model.load_weights(path)",
        ),
    ),
    "not a checkpoint": (
        "The file is not a checkpoint of the expected format: often it is a web page, a text or a Git LFS "
        "pointer instead of the download.",
        (
            "look at its first bytes and its size: head -c 200 FILE; ls -l FILE",
            "git lfs pull, or download the file again",
        ),
    ),
    "cut off": (
        "The checkpoint file ends too early: writing or downloading it was interrupted, or the disk was full.",
        (
            "download it again, without the cached copy",
            "continue from the previous checkpoint; write to a temporary name and rename it when complete",
        ),
    ),
    "missing module": (
        "The file contains a pickled class whose module cannot be imported here.",
        (
            "run the script in the same folder, or with the same package installed, as when the file was saved",
            "save model.state_dict() instead of the model",
        ),
    ),
}


class UnreadableCheckpoint(MessageRule):
    """A saved model cannot be read: wrong format or version, unknown class, or incomplete file.

    ## What it does
    Recognises the errors that `torch.load`, safetensors and Keras' `load_model` raise before any weight is
    compared.

    ## Why it is bad
    A checkpoint is a file in a particular format, often a pickle: it refers to classes that must be importable,
    and the library that reads it must be of a version that supports the format. No training is lost; only reading
    fails.

    ## Example
    ```python
    torch.save(model, "model.pt")      # the whole object, with a reference to its class
    torch.load("model.pt")             # PyTorch 2.6: Weights only load failed
    ```

    ## Instead
    ```python
    torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    ```

    ## Thresholds
    None: the rule fires only after reading has failed.

    ## Known problems
    A file that is damaged in the middle can cause the error message of a different format.

    ## Sources
    PyTorch's "Serialization semantics" (`weights_only`), and Keras' guide "Save, serialize, and export models".
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: facts.UnreadableCheckpoint) -> Finding | None:
        """Report why the file could not be read."""
        message, fix = SEEN[symptom.kind]
        named = f" The message names {symptom.what}." if symptom.what else ""
        return self.found(
            f"{message}{named}",
            fix=fix,
            evidence={"kind": symptom.kind, "what": symptom.what},
            where=crash.where,
        )
