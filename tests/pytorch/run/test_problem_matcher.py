"""The guide's problem matcher for VS Code, on the lines that `diagnose run --format concise` prints."""

import json
import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[3] / "book" / "guide" / "your-project.md"
SCRIPT = """
    import torch
    from torch import nn
    inputs = torch.randn(64, 8)
    rows = torch.utils.data.DataLoader(list(zip(inputs, inputs[:, :3].argmax(1))), 16)
    model = nn.Sequential(nn.Linear(8, 3), nn.Softmax(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in rows:
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    """


def matcher():
    (task,) = [
        text for text in re.findall(r"^```json\n(.*?)^```$", GUIDE.read_text(), re.M | re.S) if "Matcher" in text
    ]
    (task,) = json.loads(task)["tasks"]
    assert "diagnose run --format concise" in task["command"]
    return task["problemMatcher"]["pattern"]


def test_it_reads_file_line_column_severity_message_and_rule(forked):
    pattern, ended = matcher(), forked(SCRIPT, "--format", "concise", "--output", "-")
    (found,) = [
        match
        for line in ended.stdout.splitlines()
        if (match := re.match(pattern["regexp"], line)) and match[pattern["code"]] == "probabilities-as-logits"
    ]
    groups = [found[pattern[name]] for name in ("file", "line", "column", "severity")]
    assert groups == ["train.py", "9", "5", "warning"]
    assert found[pattern["message"]].startswith("The model ends in a softmax")


def test_it_passes_over_every_other_line(forked):
    matched = [
        line
        for line in ("1 warning.", "ran train.py: 3 s", "train.py: warning: seen [dead-units]")
        if re.match(matcher()["regexp"], line)
    ]
    assert matched == []


def test_a_line_without_a_column_is_one():
    found = re.match(matcher()["regexp"], "src/my code.py:31: note: seen [unused-input]")
    assert (found[1], found[2], found[3], found[4], found[6]) == (
        "src/my code.py",
        "31",
        "",
        "note",
        "unused-input",
    )
