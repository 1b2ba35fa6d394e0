"""See `UnreachableRank`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.ranks.network import NetworkFacts
from diagnostics.rules.shared.network_problems import problems

MAX_TOLD = 2  # problems in the message: further ones mostly follow from the first


class UnreachableRank(MessageRule):
    """A rank cannot reach the others, or cannot use the device that it was given.

    ## What it does
    Recognises the messages of NCCL, gloo and the rendezvous about connections that are refused, closed or never
    made, about two ranks on one GPU, and about a GPU that does not exist. `diagnose network` tries it: each rank
    allocates on its device, comes to the rendezvous, connects to every other rank by plain TCP, and then takes
    part in a barrier, an all-reduce and an exchange with each other rank, with a time limit for each.

    ## Why it is bad
    No collective can begin. The rank that reports it is often the one that waited, and the cause is in another
    one's log, in its environment, or in the network between them.

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
    In a text: none, a call has failed. `diagnose network` gives each step 30 s (`--limit`), and PyTorch 120 s to
    be imported.

    ## Known problems
    The text of one rank shows that a connection failed, and seldom why the other side closed it. `diagnose
    network` connects by TCP over IPv4; a fault that shows only with large messages or after hours is not found.

    ## Sources
    The documentation of `torch.distributed`, of torchrun, and NCCL's "Environment Variables" and
    "Troubleshooting".
    """

    severity = "error"

    @check
    def from_network(self, network: NetworkFacts) -> Finding | None:
        """Say which ranks or pairs failed, and at what."""
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
