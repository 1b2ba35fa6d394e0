"""Reads the running statistics of batch norm, which evaluation uses in place of the batch's own."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from torch.nn.modules.batchnorm import _BatchNorm

from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe
from diagnostics.facts.layers import BatchNormFacts


class RunningStatistics(TrainingProbe):
    """Reads them when it is asked."""

    def facts(self) -> Iterator[BatchNormFacts]:
        """Describe the layers that have counted a batch, if there are any."""
        found: list[tuple[str, float, bool]] = []
        for name, module in self.subject.model.named_modules():
            if not isinstance(module, _BatchNorm):
                continue
            mean, variance, counted = module.running_mean, module.running_var, module.num_batches_tracked
            if mean is None or variance is None or counted is None or not int(counted):
                continue
            momentum = math.nan if module.momentum is None else float(module.momentum)
            found.append((name, momentum, bool((mean == 0).all()) and bool((variance == 1).all())))
        if found:
            names, momentums, untouched = zip(*found, strict=True)
            yield BatchNormFacts(names, np.array(momentums, np.float64), np.array(untouched, bool))
