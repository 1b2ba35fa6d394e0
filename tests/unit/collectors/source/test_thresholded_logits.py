"""Logits that are compared with 0.5, or rounded, as if they were probabilities."""

import pytest

from tests.support import sources


def found(source):
    return [one.names for one in sources.found("thresholded_logits", source)]


@pytest.mark.parametrize(
    ("source", "of", "how"),
    [
        ("hits = ((model(x) > 0.5).float() == y).sum()", "model(x)", "0.5"),
        ("out = model(x).squeeze(1)\npred = (out >= 0.5).long()", "out", "0.5"),
        ("out = net(x)\npred = torch.where(out[:, 0] > 0.5, 1, 0)", "out[:, 0]", "0.5"),
        ("for x, y in loader:\n    out = model(x)\n    hits += (torch.round(out) == y).sum()", "out", "round"),
        ("out = model(x)\npred = out.detach().cpu().round()", "out.detach().cpu()", "round"),
        ("pred = np.round(model.predict(x))", "model.predict(x)", "round"),
        ("pred = torch.ge(model(x), 0.5)", "model(x)", "0.5"),
        ("def accuracy(out, y):\n    return ((out > 0.5) == y).mean()\nacc = accuracy(model(x), y)", "out", "0.5"),
        (
            "def binary_accuracy(preds, y):\n    return (torch.round(preds) == y).float().mean()\n"
            "def train(model):\n    for x, y in batches:\n        predictions = model(x).squeeze(1)\n"
            "        acc = binary_accuracy(predictions, y)\n",
            "preds",
            "round",
        ),
        ("for x in a:\n    out = model(x)\nif b:\n    out = model(x)\n    n += (out > 0.5).sum()", "out", "0.5"),
    ],
)  # fmt: skip
def test_are_found(source, of, how):
    assert found(source) == [(of, how)]


@pytest.mark.parametrize(
    "source",
    [
        "pred = torch.sigmoid(model(x)) > 0.5",
        "out = model(x)\nprobs = torch.sigmoid(out)\npred = probs > 0.5",
        "out = model(x)\nout = out.sigmoid()\npred = out > 0.5",
        "out = sigmoid(model(x))\npred = out.round()",
        "pred = model(x) > 0",
        "def accuracy(p, y):\n    return ((p > 0.5) == y).mean()\nacc = accuracy(torch.sigmoid(model(x)), y)",
        "def accuracy(p, y):\n    p = torch.sigmoid(p)\n    return (p > 0.5) == y\nacc = accuracy(model(x), y)",
        "def accuracy(p, y):\n    return (p > 0.5) == y\na = accuracy(model(x), y)\nb = accuracy(probs, y)",
        "def accuracy(p, y):\n    return (p > 0.5) == y\nscores = map(accuracy, batches)",
        "mask = torch.rand(8) > 0.5\nout = model(x)",
        "out = model(x)\nloss = criterion(out, y)\nprint(round(loss.item(), 4))",
        "class Net(Module):\n    def forward(self, x):\n        out = self.fc(x)\n"
        "        return out if self.training else torch.sigmoid(out)\npred = model(x) > 0.5",
        "a = generator(x) > 0.5\nout = model(x)\nb = other_net(x)\npred = out > 0.5",  # which one is it?
        "x, out = model(x)\npred = out > 0.5",
    ],
)  # fmt: skip
def test_leaves_alone(source):
    assert found(source) == []
