"""What `diagnostics.probe` costs while nothing watches, as a share of the forward pass that it stands in.

$ python tests/benchmarks/probe_cost.py
"""

import sys
import timeit

import torch
from torch import nn

import diagnostics

BOUND = 0.05
LAYERS = 6


def fastest(work, number):
    """Time one call, in seconds; the fastest of many rounds, which others on the machine disturbed least."""
    return min(timeit.repeat(work, number=number, repeat=50)) / number


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(32, 64)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(LAYERS)))  # small: a probe weighs most there
    with torch.no_grad():
        whole = fastest(lambda: model(x), 50)
    probes = LAYERS * fastest(lambda: diagnostics.probe(x, "between layers"), 5_000)
    print(
        f"{LAYERS} probes between {LAYERS} small layers, nothing watching: {probes / whole:.4f} of the pass "
        f"(at most {BOUND}): {1e9 * probes / LAYERS:.0f} ns each"
    )
    return 0 if probes / whole <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
