"""See `InstallationMismatch`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class InstallationMismatch(MessageRule):
    """The installed packages, the driver and the GPU are incompatible; the training code is not at fault.

    ## What it does
    Recognises errors from CUDA, PyTorch, NumPy and the dynamic linker that are caused by incompatible versions,
    and code that uses a name missing from the installed version of a library.

    ## Why it is bad
    PyTorch is compiled for one CUDA version and a list of GPU architectures. A driver that is too old, a GPU that
    is too new, or an extension built for another PyTorch version fails at the first call, often far from the
    import.

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
