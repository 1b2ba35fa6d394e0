"""`diagnose run` of two ranks that stop to move, and of two that only pause."""

import json
import re
import textwrap

import pytest

TRAIN = """\
import time
from datetime import timedelta
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo", timeout=timedelta(seconds=200))
brief = dist.new_group(timeout=timedelta(seconds=LIMIT))
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(64, 8)
labels = inputs[:, :3].argmax(1)
for step in range(6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= 2
    optimizer.step()
    # HERE
dist.barrier()
print(rank, [round(p.sum().item(), 6) for p in model.parameters()])
dist.destroy_process_group()
"""
BRANCH = """
    if step == 3:
        if rank == 0:
            dist.all_reduce(loss.detach(), group=brief)
        else:
            dist.barrier(group=brief)
"""
LATE = """
    if step == 3:
        if rank == 1:
            time.sleep(SLEEP)
        dist.all_reduce(loss.detach(), group=brief)
"""


@pytest.fixture
def both(two_ranks):
    """Run `TRAIN` with lines in place of its comment, on both ranks."""

    def run(here, *options, limit=100, **how):
        text = TRAIN.replace("LIMIT", str(limit))
        lines = textwrap.indent(textwrap.dedent(here), "    ")
        return two_ranks(text.replace("    # HERE\n", lines), *options, **how)

    return run


def line_of(folder, text):
    return next(n for n, line in enumerate((folder / "train.py").read_text().splitlines(), 1) if text in line)


def joined(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.slow
class TestStall:
    @pytest.mark.exhaustive  # exhibit 31 does so, and the verification opens it
    def test_names_the_two_calls_where_the_script_sets_a_short_limit_itself(self, both, tmp_path):
        codes, _, _ = both(BRANCH, "--output", "r.json", limit=4)
        assert codes == [1, 1]
        reports = [json.loads((tmp_path / name).read_text()) for name in ("r.json", "r.rank1.json")]
        found = [report["findings"][0] for report in reports]
        assert "mismatched-collective" in {finding["rule"] for finding in found}
        branch, other = line_of(tmp_path, "dist.all_reduce(loss"), line_of(tmp_path, "dist.barrier(group")
        told = joined(next(one["message"] for one in found if one["rule"] == "mismatched-collective"))
        assert f"train.py:{branch}" in told
        assert f"train.py:{other}" in told

    def test_names_the_two_calls_while_it_lasts_and_after_the_library_gave_up(self, both, tmp_path):
        codes, _, errors = both(BRANCH, "--stall-timeout", "1.5", "--output", "r.json", limit=8)
        assert codes == [1, 1]
        told = [err for err in errors if "error: mismatched-collective" in err]
        assert len(told) == 1, errors  # one rank for both
        branch, other = line_of(tmp_path, "dist.all_reduce(loss"), line_of(tmp_path, "dist.barrier(group")
        said = joined(told[0])
        assert f"ank 0 is waiting in all_reduce of float32 [] at train.py:{branch}" in said
        assert f"ank 1 is waiting in barrier at train.py:{other}" in said
        for name in ("r.json", "r.rank1.json"):
            report = json.loads((tmp_path / name).read_text())
            assert report["findings"][0]["rule"] == "mismatched-collective", name
            assert report["faults"] == []
        assert list((tmp_path / "temporary").iterdir()) == []

    def test_names_the_rank_that_does_not_come(self, both, tmp_path):
        here = LATE.replace("SLEEP", "12")
        codes, _, errors = both(here, "--stall-timeout", "1.5", limit=8)
        assert codes[0] == 1
        (told,) = (err for err in errors if "no step ends on 2 ranks of 2" in err)
        place = f"train.py:{line_of(tmp_path, 'time.sleep')}"
        assert f"Rank 1 is at {place} (time.sleep(12))" in joined(told)
        assert "Rank 0 is waiting in all_reduce" in joined(told)

    def test_a_pause_is_not_told_and_nothing_changes(self, both, tmp_path):
        here = LATE.replace("SLEEP", "4")  # a note is written after 3 seconds
        codes, outputs, errors = both(here, "--stall-timeout", "12")
        assert codes == [0, 0], errors
        assert "no step ends" not in "".join(errors)
        assert "Nothing found." in errors[0]
        assert list((tmp_path / "temporary").iterdir()) == []
        assert both(here.replace("(4)", "(0)"), observed=False).outputs == outputs
