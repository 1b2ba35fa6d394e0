"""`compare`: vectorised functions and their twins in loops."""

import torch
import torch.nn.functional as F

import diagnostics

from .case import cases, failed


def check(fast, slow, inputs):
    return lambda: failed(diagnostics.compare(fast, slow, inputs).assert_same)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def attention_in_loops(q, k, v):
    rows = []
    for b in range(q.shape[0]):
        scores = torch.stack([torch.stack([(x * y).sum() for y in k[b]]) for x in q[b]]) / q.shape[-1] ** 0.5
        rows.append(torch.stack([sum(w * x for w, x in zip(s.softmax(0), v[b], strict=True)) for s in scores]))
    return torch.stack(rows)


def distances(x, y):
    return torch.cdist(x, y)


def distances_in_loops(x, y):
    return torch.stack([torch.stack([((a - b) ** 2).sum().sqrt() for b in y]) for a in x])


def normalised(x):
    return F.layer_norm(x, x.shape[-1:])


def normalised_in_loops(x):
    return torch.stack([(row - row.mean()) / (row.var(correction=0) + 1e-5).sqrt() for row in x])


def masked_mean(x, kept):
    return (x * kept[..., None]).sum(1) / kept.sum(1, keepdim=True).clamp(min=1)


def masked_mean_in_loops(x, kept):
    means = []
    for rows, weights in zip(x, kept, strict=True):
        total = sum(row * weight for row, weight in zip(rows, weights, strict=True))
        means.append(total / weights.sum().clamp(min=1))
    return torch.stack(means)


def outer(x, y):
    return torch.einsum("bi,bj->bij", x, y)


def outer_in_loops(x, y):
    return torch.stack([torch.stack([value * other for value in row]) for row, other in zip(x, y, strict=True)])


ATTENTION = ["batch query width", "batch key width", "batch key width"]
PAIRS, ROWS = ["rows features", "others features"], ["rows features"]
MASKED = ["batch time width", "batch time < 2"]

CASES = [
    *cases(
        {
            "attention": check(attention, attention_in_loops, ATTENTION),
            "pairwise distances": check(distances, distances_in_loops, PAIRS),
            "layer norm": check(normalised, normalised_in_loops, ROWS),
            "masked mean": check(masked_mean, masked_mean_in_loops, MASKED),
            "outer product of each row": check(outer, outer_in_loops, ["rows left", "rows right"]),
        },
        {
            "scale of the scores forgotten": (
                check(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, attention_in_loops, ATTENTION),
                "differ",
            ),
            "result transposed": (
                check(lambda x, y: torch.cdist(y, x), distances_in_loops, PAIRS),
                "transpose",
            ),
            "sum in place of the mean": (
                check(lambda x, kept: (x * kept[..., None]).sum(1), masked_mean_in_loops, MASKED),
                "differ",
            ),
            "gradient cut by detach": (
                check(lambda x: normalised(x.detach()) + 0 * x, normalised_in_loops, ROWS),
                "gradient",
            ),
            "result in half precision": (
                check(lambda x, y: outer(x, y).half(), outer_in_loops, ["rows left", "rows right"]),
                "float16",
            ),
            "normalised over the wrong axis": (
                check(
                    lambda x: (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt(), normalised_in_loops, ROWS
                ),
                "differ",
            ),
        },
    )
]
