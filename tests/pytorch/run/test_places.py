"""The lines that the findings of a whole run name, where the rule knows none."""

import json

import pytest

LOOP = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    inputs = torch.randn(256, 8)
    rows = TensorDataset(inputs, inputs[:, :3].argmax(1))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=0.1,
    )
    def train():
        for batch, labels in DataLoader(rows, 32):
            optimizer.zero_grad()
            outputs = model(batch)
            loss = nn.functional.cross_entropy(outputs, labels)
            loss.backward()
            optimizer.step()
    for epoch in range(8):
        train()
    """


@pytest.mark.parametrize(
    ("plain", "broken", "rule", "line"),
    [
        ("cross_entropy(outputs", "cross_entropy(outputs.softmax(1)", "probabilities-as-logits", 17),
        ("lr=0.1", "lr=300.0", "learning-rate-too-high", 9),
        ("optimizer.zero_grad()", "pass", "gradients-not-zeroed", 18),
        ("inputs[:, :3].argmax(1)", "torch.zeros(256, dtype=torch.long)", "single-class-labels", 14),
    ],
)
def test_a_loop(forked, plain, broken, rule, line):
    # By line: where its expression ends. Python 3.11 keeps the whole statement of a `for`.
    ends = {9: ((12, 13, 2),), 14: ((14, 26, 46), (19, 5, 25)), 17: ((17, 16, 71),), 18: ((18, 9, 24),)}
    ended = forked(LOOP.replace(plain, broken), "--format", "json", "--output", "-")
    findings = {one["rule"]: one for one in json.loads(ended.stdout)["findings"]}
    function = "<module>" if line == 9 else "train"
    where = findings[rule]["where"]
    assert where | {"file": "train.py", "line": line, "function": function} == where
    assert (where["end_line"], where["column"], where["end_column"]) in ends[line]
    assert all(one["where"] is not None for one in findings.values() if one["severity"] != "note")


OWN_LOSS = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    inputs = torch.randn(256, 8)
    targets = inputs[:, 0]
    class Squared(nn.Module):
        def forward(self, outputs, labels):
            return (outputs - labels).square().mean()
    def squared(outputs, labels):
        return (outputs - labels).square().mean()
    criterion, model = Squared(), nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for batch, labels in zip(inputs.split(32), targets.split(32)):
            optimizer.zero_grad()
            loss = criterion(model(batch), labels)
            loss += 1e-4 * model.weight.square().sum()
            (loss / 2).backward()
            optimizer.step()
    """


@pytest.mark.parametrize(
    ("call", "line", "columns"),
    [
        ("criterion(model(batch), labels)", 17, (16, 47)),
        ("squared(model(batch), labels)", 17, (16, 45)),
        ("((model(batch) - labels) ** 2).mean()", 17, (16, 53)),
        ("criterion(model(batch), labels) if epoch else criterion(model(batch), labels)", 17, (62, 93)),
    ],
)
def test_a_loss_of_the_scripts_own(forked, call, line, columns):
    script = OWN_LOSS.replace("criterion(model(batch), labels)", call)
    ended = forked(script, "--format", "json", "--output", "-")
    (found,) = (one for one in json.loads(ended.stdout)["findings"] if one["rule"] == "broadcast-loss")
    assert (found["where"]["line"], found["where"]["column"], found["where"]["end_column"]) == (line, *columns)


def test_a_loss_that_one_of_two_lines_computes_has_the_line_of_its_backward_pass(forked):
    either = """
            if epoch % 2:
                loss = squared(model(batch), labels)
            else:
                loss = squared(model(batch), labels).abs()"""
    script = OWN_LOSS.replace("\n            loss = criterion(model(batch), labels)", either)
    ended = forked(script, "--format", "json", "--output", "-")
    (found,) = (one for one in json.loads(ended.stdout)["findings"] if one["rule"] == "broadcast-loss")
    assert found["where"]["line"] == 22
