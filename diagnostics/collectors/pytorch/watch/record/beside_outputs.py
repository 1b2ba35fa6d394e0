"""Which parameters a model holds that its outputs do not come from, as the weights of two losses."""

from __future__ import annotations

from torch import Tensor

from diagnostics.collectors.pytorch.loss_graph import MOST_NODES, graph_nodes

from .norms import Layers


def beside_outputs(outputs: list[Tensor], layers: Layers) -> frozenset[int]:
    """Return the numbers of the parameters that the outputs do not come from.

    What reads them stands between the outputs and the loss, so that their gradients of a backward pass are there
    before the first gradient of an output is: they say nothing about the pass before. None of them is returned
    where the graph is not known to its end, as inside a checkpoint.
    """
    nodes = graph_nodes(*outputs)
    read = {id(node.variable) for node in nodes if hasattr(node, "variable")}
    beside = frozenset(number for number, parameter in layers.everything() if id(parameter) not in read)
    return frozenset() if len(beside) == len(layers.parameters) or len(nodes) >= MOST_NODES else beside
