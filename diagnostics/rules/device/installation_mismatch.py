"""See `InstallationMismatch`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import ReleaseChange, VersionsDiffer


class InstallationMismatch(MessageRule):
    """The installed packages, the driver and the GPU are incompatible; the training code is not at fault.

    ## What it does
    Recognises errors from CUDA, PyTorch, NumPy and the dynamic linker that are caused by incompatible versions,
    and code that uses a name missing from the installed version of a library.

    ## Why it is bad
    PyTorch is compiled for one CUDA version and a list of GPU architectures. A driver that is too old, a GPU that
    is too new, or an extension built for another PyTorch fails at the first call, often far from the import.

    ## Example
    ```python
    # RuntimeError: no kernel image is available for execution on the device
    torch.zeros(1).cuda()
    ```

    ## Instead
    ```python
    print(torch.__version__, torch.version.cuda, torch.cuda.get_arch_list())
    ```

    ## Thresholds
    None: the rule fires only after a call has failed.

    ## Known problems
    A message about a missing symbol does not show which package has the wrong version. A misspelt name raises the
    same error as a name that the installed version lacks.

    ## Sources
    PyTorch's "Get started" page, NVIDIA's "CUDA compatibility", and NumPy's migration guide to 2.0.
    """

    severity = "error"

    @check
    def from_versions(self, crash: CrashFacts, symptom: VersionsDiffer) -> Finding | None:
        """Name what the installed version lacks, and the package that uses it."""
        message, fix = _lacking(symptom)
        return self.found(
            message,
            fix=fix,
            evidence={
                "kind": symptom.kind,
                "owner": symptom.owner,
                "name": symptom.name,
                "caller": symptom.caller,
            },
            where=crash.where,
        )


NUMPY_1_24 = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "complex": "complex",
    "object": "object",
    "str": "str",
}
"""Aliases that NumPy 1.24 removed, and their replacements."""

PIP_NAMES = {"pytorch_lightning": "lightning", "PIL": "pillow", "sklearn": "scikit-learn", "tf": "tensorflow"}


_TENSORFLOW_1 = ("import tensorflow.compat.v1 as tf, and call tf.disable_v2_behavior() before anything else",)


def _changed(change: ReleaseChange, caller: str | None) -> tuple[str, Fix]:
    package, call, name = change.package, change.call, change.name
    by = f" The call is in {caller}." if caller and caller.replace("_", "-") != package else ""
    if change.kind == "added":
        return (
            f"The installed {package} is too old for the argument {name} of {call}: {change.version} has it, but "
            f"{change.before} does not.{by}",
            (f'python -m pip install -U "{package}>={change.version}", and restart', f"leave out {name}"),
        )
    lacks = f"has {name}" if change.is_attribute else f"takes the argument {name}"
    if (package, change.version) == ("tensorflow", "2.0") and change.is_attribute:
        return (
            f"The code was written for TensorFlow 1: TensorFlow 2.0 removed tf.{name}, and 1.15 was the last "
            f"release with it.{by}",
            (
                *_TENSORFLOW_1[name == "contrib" :],
                "for code that cannot be changed: install TensorFlow 1.15 with Python 3.7 (pip install "
                '"tensorflow==1.15.*")',
            ),
        )
    use = f"{change.instead}, in place of {name}" if change.instead else f"leave out {name}"
    return (
        f"{call} no longer {lacks}: {package} {change.before} still has it, but {change.version} does not.{by}",
        (use, f'python -m pip install "{package}=={change.before}.*", for code that cannot be changed'),
    )


def _lacking(symptom: VersionsDiffer) -> tuple[str, Fix]:
    if symptom.change is not None:
        return _changed(symptom.change, symptom.caller)
    owner, name, caller = symptom.owner, symptom.name, symptom.caller
    top = owner.split(".")[0]
    if top == "numpy" and name in NUMPY_1_24 and symptom.kind == "attribute":
        by = f" {caller} still uses it." if caller and caller != "numpy" else ""
        return (
            f"NumPy 1.24 removed numpy.{name}, an alias of Python's {NUMPY_1_24[name]}.{by}",
            (
                f"use {NUMPY_1_24[name]} instead of np.{name}",
                *((f"use np.{name}64, if the number of bits matters",) if name in ("int", "float") else ()),
                "if the failing line is in a package, update the package",
                'pip install "numpy<1.24", for old code that cannot be changed',
            ),
        )
    lacks = {
        "attribute": f"{owner or 'a class'} has no attribute {name}",
        "argument": f"{owner or 'the class that was called'} takes no argument {name}",
        "import": f"{owner} has no {name}",
    }[symptom.kind]
    show = f"python -m pip show {PIP_NAMES.get(top, top)}" if top.islower() else "python -m pip list"
    if caller and caller != top:
        return (
            f"In the installed versions, {lacks}, but {caller} uses it: two installed packages are incompatible. "
            "The training code is not at fault.",
            (
                f"update both: python -m pip install -U {PIP_NAMES.get(caller, caller)}"
                + (f" {PIP_NAMES.get(top, top)}" if top.islower() else " and the package of that class"),
                f"install the versions that {caller} lists as requirements",
            ),
        )
    return (
        f"In the installed version, {lacks}: it was removed, renamed or moved, or does not exist yet. The code "
        "was written for another version, or the name is misspelt.",
        (
            f"{show}, and install the version that the code's README or requirements name",
            "look up the name in the library's release notes and use its replacement",
        ),
    )
