"""See `InstallationMismatch`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, Rule, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import InstallationCrash

_REINSTALL = "install PyTorch anew, by the command that pytorch.org gives for your system and driver"

SEEN: dict[str, tuple[str, Fix]] = {
    "no kernels": (
        "This build of PyTorch (or of the extension in the traceback) has no kernels for this GPU: its "
        "architecture is newer, or older, than those it was compiled for.",
        (
            "compare torch.cuda.get_device_capability() with torch.cuda.get_arch_list()",
            "install a build for a newer CUDA, for a new card; an older release of PyTorch, for an old one",
        ),
    ),
    "old driver": (
        "The NVIDIA driver is older than the CUDA version that PyTorch was built with.",
        (
            "update the driver; nvidia-smi shows the newest CUDA version that it can run",
            "install a build of PyTorch for that CUDA version",
        ),
    ),
    "no driver": (
        "No NVIDIA driver was found, so no GPU can be used.",
        (
            "nvidia-smi, which must list the card; in a container start it with --gpus all",
            'device = "cuda" if torch.cuda.is_available() else "cpu"',
        ),
    ),
    "cpu build": (
        "This PyTorch was built without CUDA, and the script asks for a GPU.",
        (_REINSTALL, 'device = "cuda" if torch.cuda.is_available() else "cpu"'),
    ),
    "cudnn": (
        "Another cuDNN is loaded than the one that PyTorch was built with.",
        (
            "unset LD_LIBRARY_PATH: PyTorch brings its own cuDNN",
            "remove the cuDNN that another package installed, and install PyTorch anew",
        ),
    ),
    "gpu checkpoint": (
        "The checkpoint holds tensors of a GPU that this process does not have.",
        'torch.load(path, map_location="cpu")',
    ),
    "binary": (
        "A compiled package does not fit the installed PyTorch, CUDA or system libraries: it was "
        "built for another "
        "version.",
        (
            "install the two together, in the pair of versions that the package's compatibility table gives",
            "build the package anew against the installed PyTorch: pip install "
            "--no-build-isolation --no-cache-dir",
        ),
    ),
    "numpy": (
        "A compiled package does not fit the installed NumPy: it was built for another version.",
        (
            "update the package that the traceback names",
            'pip install "numpy<2", if there is no newer one, and restart the process',
        ),
    ),
    "missing package": (
        "An optional dependency is not installed, or not in the version that is needed.",
        ("install it, and restart the kernel or the process", "python -m pip show NAME, to see which one runs"),
    ),
}


class InstallationMismatch(Rule):
    """Packages, driver and GPU do not fit together; the training code is not at fault.

    ## What it does
    Recognises the errors of CUDA, PyTorch, NumPy and the dynamic linker that come of versions which do not fit.

    ## Why it is bad
    PyTorch is compiled for one CUDA version and a list of GPU architectures. A driver that is too old, a card
    that is too new, or an extension built for another PyTorch fails at the first call, often far from the import.

    ## Example
    ```python
    torch.zeros(1).cuda()    # RuntimeError: no kernel image is available for execution on the device
    ```

    ## Instead
    ```python
    print(torch.__version__, torch.version.cuda, torch.cuda.get_arch_list())
    ```

    ## Thresholds
    None: it is found only after a call has failed.

    ## Known problems
    A message about a missing symbol does not say which of the two packages is the wrong one.

    ## Sources
    PyTorch's "Get started" page, NVIDIA's "CUDA compatibility", and NumPy's migration guide to 2.0.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: InstallationCrash) -> Finding | None:
        """Say what does not fit."""
        message, fix = SEEN[symptom.kind]
        return self.found(
            message, fix=fix, evidence={"kind": symptom.kind, "said": symptom.said}, where=crash.where
        )
