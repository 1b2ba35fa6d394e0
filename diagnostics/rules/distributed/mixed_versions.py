"""See `MixedVersions`."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.ranks.network import NetworkFacts, RankFacts
from diagnostics.text.join import count_of, listed

MAX_NAMED = 6  # ranks with one version in the message
COMPARED = ("torch", "CUDA", "NCCL", "Python")
"""Versions that must agree. For Python, the first two numbers do: ranks exchange pickled objects."""


class MixedVersions(MessageRule):
    """The ranks of one job run different versions of PyTorch, CUDA, NCCL or Python.

    ## What it does
    `diagnose network` compares the versions that each rank has loaded. In a pasted log or traceback, the rule
    recognises NCCL's error message.

    ## Why it is bad
    The ranks communicate through their library's protocol, which changes from version to version. A job with mixed
    versions hangs or fails with an unrelated message, sometimes only at the first large collective. Even if such a
    job runs, its replicas may drift apart.

    ## Example
    ```python
    # node-a: torch 2.6.0, NCCL 2.21.5
    # node-b: torch 2.4.1, NCCL 2.20.5
    ```

    ## Instead
    ```python
    # use one image or environment for all nodes; compare pip freeze
    ```

    ## Thresholds
    None: any difference is reported, except that only the first two numbers of the Python version are compared.

    ## Known problems
    Different builds of one version (2.6.0+cu124 and 2.6.0+cu126) are treated as different versions.

    ## Sources
    NCCL's "Troubleshooting" and its error about mismatched versions; the documentation for torchrun.
    """

    severity = "warning"

    @check
    def from_network(self, network: NetworkFacts) -> Finding | None:
        """Compare the ranks' versions."""
        ranks = [rank for rank in network.ranks if rank.versions]
        if len(ranks) < 2:
            raise NotApplicable("needs the library versions of at least two ranks")
        differing = [(what, by_version) for what in COMPARED if len(by_version := _by_version(ranks, what)) > 1]
        if not differing:
            return None
        parts = [
            f"{what} is " + listed((f"{one} on {_ranks(numbers)}" for one, numbers in by_version.items()), "but")
            for what, by_version in differing
        ]
        names = [what for what, _ in differing]
        return self.found(
            f"The ranks run different versions: {'; '.join(parts)}. The ranks take part in the same "
            "collectives, but each one expects the protocol of its own version.",
            fix=(
                f"install the same version of {listed(names)} on every host, for example with one container "
                "image or one environment on a shared file system",
                'run python -c "import torch; print(torch.__version__, torch.__file__)" on each host, inside the '
                "job, because a login shell may find another version",
            ),
            evidence={what: {v: list(n) for v, n in by_version.items()} for what, by_version in differing},
        )


def _by_version(ranks: list[RankFacts], what: str) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for rank in ranks:
        if what in rank.versions:
            version = rank.versions[what]
            found.setdefault(".".join(version.split(".")[:2]) if what == "Python" else version, []).append(
                rank.number
            )
    return found


def _ranks(numbers: list[int]) -> str:
    if len(numbers) > MAX_NAMED:
        return count_of(len(numbers), "rank")
    return f"rank{'s' if len(numbers) > 1 else ''} {listed(numbers)}"
