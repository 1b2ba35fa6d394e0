"""See `UnreachableRank`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class UnreachableRank(MessageRule):
    """A rank cannot reach the others, or cannot use the device that it was given.

    ## What it does
    Recognises the messages of NCCL, gloo and the rendezvous about connections that are refused, closed or never
    made, about two ranks on one GPU, and about a GPU that does not exist.

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
    None: it is found only after a call has failed.

    ## Known problems
    The text of one rank shows that a connection failed, and seldom why the other side closed it.

    ## Sources
    The documentation of `torch.distributed`, of torchrun, and NCCL's "Environment Variables" and
    "Troubleshooting".
    """

    severity = "error"
