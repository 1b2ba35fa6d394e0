import ast

import numpy as np
import pytest

from diagnostics.collectors.source.compared_shapes import compared_pairs

TRUTH = np.random.default_rng(0).integers(3, size=200)
SAID = np.where(np.arange(200) % 10 == 0, (TRUTH + 1) % 3, TRUTH)


def compared(code, **values):
    return list(compared_pairs(ast.parse(code), "script.py", {"said": SAID[:, None], "truth": TRUTH, **values}))


@pytest.mark.parametrize(
    "code",
    [
        "(said == truth).mean()",
        "np.mean(said == truth)",
        "float((truth == said).float().mean())",
        "right += torch.eq(said, torch.tensor(truth)).sum().item()",
        "tf.reduce_mean(tf.cast(tf.equal(said, truth), tf.float32))",
        "for epoch in epochs:\n    if epoch % 5 == 0:\n        print((said.cpu() == truth).float().mean())",
    ],
)
def test_finds_a_column_compared_with_a_vector(code):
    (one,) = compared(code)
    assert {(200, 1), (200,)} == set(one.shapes)
    assert one.of_rows == pytest.approx(0.9)
    assert one.of_pairs == pytest.approx(float((SAID[:, None] == TRUTH).mean()))


@pytest.mark.parametrize(
    "code",
    [
        "(said == truth).mean(0)",
        "(said == truth).sum(axis=1)",
        "mask = said == truth",
        "(said[:, 0] == truth).mean()",
        "(said.squeeze() == truth).mean()",
        "(said == truth).mean()\nsaid = said[:, None]",
        "def accuracy(said, truth):\n    return (said == truth).mean()",
        "[(said == truth).mean() for said, truth in batches]",
        "if truth.ndim == 2:\n    (said == truth).mean()",
        "(lambda said: (said == truth).mean())(1)",
    ],
)
def test_leaves_out_what_is_not_known_to_count_all_pairs(code):
    assert compared(code) == []


@pytest.mark.parametrize("said", [SAID, SAID[:100, None], SAID[:, None, None], SAID.tolist(), None])
def test_needs_a_column_of_as_many_rows(said):
    assert compared("(said == truth).mean()", said=said) == []
