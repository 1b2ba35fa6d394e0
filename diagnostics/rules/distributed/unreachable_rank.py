"""See `UnreachableRank`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.ranks.network import NetworkFacts
from diagnostics.rules.shared.network_problems import problems

MAX_TOLD = 2  # problems in the message: further ones usually follow from the first


class UnreachableRank(MessageRule):
    """A rank cannot reach the others, or cannot use its device.

    ## What it does
    Recognises the messages of NCCL, gloo and the rendezvous about connections that were refused, closed or never
    made, about two ranks on one GPU, and about a GPU that does not exist. `diagnose network` tests the
    connections: each rank allocates memory on its device, joins the rendezvous, connects to every other rank over
    plain TCP, and then takes part in a barrier, an all-reduce and an exchange with every other rank, with a time
    limit for each step.

    ## Why it is bad
    No collective can start. The rank that reports the failure is often the one that waited; the cause is in the
    log or environment of another rank, or in the network between them.

    ## Example
    ```python
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Net().cuda())        # every rank takes GPU 0
    ```

    ## Instead
    ```python
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Net().cuda(), device_ids=[local_rank])
    ```

    ## Thresholds
    In text, none: a call has failed. `diagnose network` allows 30 s for each step (`--limit`), and 120 s to import
    PyTorch.

    ## Known problems
    The output of one rank shows that a connection failed, but rarely why the other side closed it.
    `diagnose network` connects over TCP and IPv4. A fault that shows only with large messages or after hours is
    missed.

    ## Sources
    The documentation of `torch.distributed`, of torchrun, and NCCL's "Environment Variables" and
    "Troubleshooting".
    """

    severity = "error"

    @check
    def from_network(self, network: NetworkFacts) -> Finding | None:
        """Name the ranks or pairs that failed, and the step at which they did."""
        found = problems(network)
        if not found:
            return None
        told = found[:MAX_TOLD]
        more = [f"({len(found) - MAX_TOLD} more in the stages above.)"] if len(found) > MAX_TOLD else []
        return self.found(
            " ".join([*(problem.sentence for problem in told), *more]),
            fix=tuple(dict.fromkeys(fix for problem in told for fix in problem.fixes)),
            evidence={
                "address": network.address,
                "world": network.world,
                "missing": list(network.missing),
                "ranks": sorted({number for problem in found for number in problem.ranks}),
                "pairs": [list(pair) for problem in found for pair in problem.pairs],
                "limit_s": network.limit,
            },
        )
