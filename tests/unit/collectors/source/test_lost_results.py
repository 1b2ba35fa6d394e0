"""Statements whose result is kept nowhere."""

import pytest

from tests.support.sources import names_and_lines


def lost(source):
    return names_and_lines("lost_results", source)


def test_a_moving_average_that_is_never_written():
    source = """
        def update(self, model):
            for e, p in zip(self.ema.parameters(), model.parameters()):
                e = self.decay * e + (1 - self.decay) * p
    """
    assert lost(source) == [("e = self.decay * e + (1 - self.decay) * p", "e", "rebound", 4)]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("scores.masked_fill(mask == 0, -1e9)", "scores"),
        ("F.dropout(x, 0.5, self.training)", "x"),
        ("torch.clamp(weights, -1, 1)", "weights"),
        ("for name, p in critic.named_parameters():\n    p = p.clamp(-0.01, 0.01)", "p"),
        ("hidden.detach()", "hidden"),
        ("df.dropna()", "df"),
        ("dataset.shuffle(seed=42)", "dataset"),
    ],
)
def test_names_what_stays_as_it_was(source, name):
    assert [found[1] for found in lost(source)] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "scores.masked_fill_(mask, -1e9)",
        "scores = scores.masked_fill(mask, -1e9)",
        "df.dropna(inplace=True)",
        "F.relu(x, inplace=True)",
        "torch.clamp(x, 0, 1, out=x)",
        "axes.scatter(x, y)",
        "memory.detach()",
        "random.shuffle(rows)",
        "import ops\nops.squeeze(x)",
        "class Net:\n    def permute(self): ...\nnet.permute()",
        "try:\n    x.permute(0, 2)\nexcept RuntimeError:\n    pass",
        "with pytest.raises(ValueError):\n    df.dropna(axis=3)",
        "dataset.map(store, batched=True)",
        "for p in model.parameters():\n    p = torch.nn.init.normal_(p)",
        "for p in model.parameters():\n    p = p.detach()\n    total += p.norm()",
        "for p in model.parameters():\n    p = p.detach()\n    p.zero_()",
        "for e, p in zip(a.parameters(), b.parameters()):\n    e.data = 0.9 * e.data + 0.1 * p.data",
    ],
)
def test_is_silent(source):
    assert not lost(source)
