"""A loss that training increases: by mistake from the start, on purpose once the model is trained."""

import json
import textwrap

import pytest

SCRIPT = """
    import torch
    from torch import nn

    torch.manual_seed(2)
    centres = 3 * torch.randn(5, 10)
    labels = torch.arange(1500) % 5
    rows = centres[labels] + torch.randn(1500, 10)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range({trained}):
        batch = torch.randint(1500, (50,))
        loss = criterion(model(rows[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ascent = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(40):
        batch = torch.randint(1500, (50,))
        loss = -criterion(model(rows[batch]), labels[batch])
        ascent.zero_grad()
        loss.backward()
        ascent.step()
    """


@pytest.mark.parametrize(("trained", "named"), [(0, True), (40, False)])
def test_only_ascent_on_an_untrained_model_is_an_inverted_loss(torch_forks, tmp_path, trained, named):
    # The second optimizer is watched from its 20th step on: by then the loss is that of an untrained model again.
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT).replace("{trained}", str(trained)))
    arguments = ["diagnose", "run", "--output", "r.json", "--quiet", "--second-look", "off", "train.py"]
    code = "import sys; from diagnostics.cli.main import main; sys.exit(main())"
    torch_forks.run(code, *arguments, folder=tmp_path)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["faults"] == []
    assert ("inverted-loss" in [finding["rule"] for finding in report["findings"]]) == named
