"""Models that two ranks share by DistributedDataParallel, trained rightly, and in ways that let them drift."""

import json

import pytest

from diagnostics.report.join import join_reports

HEALTHY = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
inputs = torch.randn(256, 8)
dataset = TensorDataset(inputs, inputs[:, :3].argmax(1))
sampler = DistributedSampler(dataset, seed=1)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
model = DistributedDataParallel(net)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, rank, loss.item())
print([p.double().sum().item() for p in net.parameters()], torch.rand(1).item())
dist.destroy_process_group()
"""
STEP = "        loss.backward()\n        optimizer.step()\n"
LOSS = "loss = nn.functional.cross_entropy(model(x), y)\n"
ACCUMULATE = """\
        if number % 2 == 0:
            with model.no_sync():
                loss.backward()
        else:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
"""
ACCUMULATED = HEALTHY.replace("        optimizer.zero_grad()\n", "").replace(STEP, ACCUMULATE)
UNEVEN = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
inputs = torch.randn(160 + 96 * rank, 8)  # 5 batches on one rank, and 8 on the other
labels = inputs[:, :3].argmax(1)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(4):
    with model.join():
        for x, y in zip(inputs.split(32), labels.split(32)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    if rank == 0:
        print(model.module(inputs[:32]).argmax(1).eq(labels[:32]).float().mean().item())
dist.destroy_process_group()
"""
SHARDED = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
inputs = torch.randn(256, 8)
labels = inputs[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(40):
    chosen = torch.randint(0, 256, (16,), generator=rows)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen]).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
dist.destroy_process_group()
"""
BY_HAND = HEALTHY.replace("model = DistributedDataParallel(net)", "model = net").replace(
    STEP,
    """\
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad.data)
            parameter.grad.data /= 2
        optimizer.step()
""",
)
BYPASSED = HEALTHY.replace("model(x)", "net(x)")
STEP_WITHIN_NO_SYNC = HEALTHY.replace(LOSS, f"with model.no_sync():\n            {LOSS}")
SAME_ROWS = HEALTHY.replace("sampler=sampler)", "shuffle=True, generator=torch.Generator().manual_seed(2))")
LATE = BY_HAND.replace("        optimizer.step()\n", "").replace(
    "        loss.backward()\n", "        loss.backward()\n        optimizer.step()\n"
)
UNEVEN_WITHOUT_JOIN = HEALTHY.replace("sampler=sampler)", "sampler=range(rank, 256 - 40 * rank))").replace(
    'init_process_group("gloo")', 'init_process_group("gloo", timeout=timedelta(seconds=100))'
)
UNEVEN_WITHOUT_JOIN = f"from datetime import timedelta\n{UNEVEN_WITHOUT_JOIN}"
# Three at once, which have nothing to do with each other: of the order, of the split, of the noise and its layers.
SILENT = (
    HEALTHY.replace("    sampler.set_epoch(epoch)\n", "")
    .replace("batch_size=16", "batch_size=8")
    .replace("model(x), y)", "model(x + 0.1 * torch.randn_like(x)), y)")
    .replace(
        "dataset = TensorDataset(inputs, inputs[:, :3].argmax(1))",
        "whole = TensorDataset(inputs, inputs[:, :3].argmax(1))\n"
        "generator = torch.Generator().manual_seed(rank)\n"
        "dataset, _ = torch.utils.data.random_split(whole, [192, 64], generator=generator)",
    )
)
SHARDED_CLIP = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(256, 8)
labels = inputs[:, :3].argmax(1)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
model = FullyShardedDataParallel(net, device_id=torch.device("cpu"), use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(20):
    chosen = torch.randint(0, 256, (16,), generator=rows)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen]).backward()
    CLIP
    optimizer.step()
dist.destroy_process_group()
"""
GROWN = HEALTHY.replace("optimizer = ", "net.append(nn.Linear(3, 3))\noptimizer = ")


def rules(report):
    return [finding["rule"] for finding in report["findings"]]


@pytest.mark.slow
class TestHealthy:
    def test_is_silent_and_trains_to_the_same_bits(self, two_ranks, tmp_path):
        codes, outputs, errors = two_ranks(HEALTHY, "--output", "r.json")
        assert codes == [0, 0], errors
        assert two_ranks(HEALTHY, observed=False).outputs == outputs
        assert [line for line in "".join(errors).splitlines() if "report is in" not in line] == []
        for name in ("r.json", "r.rank1.json"):
            report = json.loads((tmp_path / name).read_text())
            assert (report["findings"], report["faults"]) == ([], [])
        assert list((tmp_path / "temporary").iterdir()) == []

    @pytest.mark.parametrize(
        "text", [ACCUMULATED, UNEVEN, SHARDED, BY_HAND], ids=["accumulation", "join", "FSDP2", "by hand"]
    )
    def test_another_healthy_program_is_silent(self, two_ranks, text):
        codes, _, errors = two_ranks(text)
        assert codes == [0, 0], errors
        assert "Nothing found." in errors[0]
        assert "compared the ranks" not in "".join(errors)
        assert "diagnostics itself" not in "".join(errors)


@pytest.mark.slow
class TestBroken:
    def test_a_wrapper_that_is_not_called(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(BYPASSED, "--output", "r.json")
        assert codes == [0, 0], errors
        report = json.loads((tmp_path / "r.json").read_text())
        (finding,) = report["findings"]
        assert finding["rule"] == "bypassed-wrapper"
        assert "none of its 32 forward passes with gradients went through the wrapper" in finding["message"]
        assert finding["where"]["line"] == 1 + BYPASSED.splitlines().index(
            "        loss = nn.functional.cross_entropy(net(x), y)"
        )

    def test_steps_on_gradients_that_were_not_averaged(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(STEP_WITHIN_NO_SYNC)
        assert codes == [0, 0], errors
        (told,) = (err for err in errors if "error: diverged-replicas" in err)
        said = " ".join(told.split())
        assert "The replicas of Sequential were identical after step 0 but differ after step 1: " in said

    def test_ranks_that_are_fed_the_same_rows(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(SAME_ROWS)
        assert codes == [0, 0], errors
        (told,) = (err for err in errors if "warning: ranks-share-rows" in err)
        assert "Ranks 0 and 1 got the same batch" in " ".join(told.split())

    def test_a_layer_that_is_added_after_wrapping(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(GROWN, "--output", "r.json")
        assert codes == [0, 0], errors
        report = json.loads((tmp_path / "r.json").read_text())
        assert "bypassed-wrapper" in rules(report)
        (finding,) = (one for one in report["findings"] if one["rule"] == "bypassed-wrapper")
        assert finding["evidence"]["parameters_added"] == ["5.weight", "5.bias"]

    def test_gradients_that_are_averaged_by_hand_too_late(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(LATE, "--output", "r.json")
        assert codes == [0, 0], errors
        (finding,) = join_reports(tmp_path).findings
        assert finding.rule == "diverged-replicas"
        assert "The replicas of Sequential have differed from the start: after step 1, 0.weight" in finding.message
        assert "with all_reduce" in finding.message

    def test_a_rank_with_more_batches(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(UNEVEN_WITHOUT_JOIN, "--output", "r.json")
        assert codes == [1, 0], errors
        (told,) = (err for err in errors if "error: uneven-batches" in err)
        said = " ".join(told.split())
        assert "Rank 1 finished after 56 batches. Rank 0 was waiting for rank 1 in batch 57" in said
        assert join_reports(tmp_path).findings[0].rule == "uneven-batches"

    def test_what_no_loss_shows(self, two_ranks, tmp_path):
        codes, _, errors = two_ranks(SILENT, "--output", "r.json")
        assert codes == [0, 0], errors
        report = join_reports(tmp_path)
        noted = {finding.rule for finding in report.findings if finding.severity == "note"}
        alarmed = {finding.rule for finding in report.findings} - noted
        assert alarmed == {"repeated-shuffle", "ranks-shuffle-apart"}
        assert noted >= {"ranks-share-randomness", "local-batch-norm"}
        assert report.faults == ()
        (alone,) = (one for one in report.findings if one.rule == "repeated-shuffle")
        assert alone.message.startswith("All 2 ranks, as rank 0 (")

    @pytest.mark.parametrize(
        ("line", "rules"),
        [
            ("nn.utils.clip_grad_norm_(model.parameters(), 0.05)", ["clipped-by-local-norm"]),
            ("model.clip_grad_norm_(0.05)", []),
        ],
        ids=["by shard", "over all shards"],
    )
    def test_sharded_gradients_that_are_clipped(self, two_ranks, tmp_path, line, rules):
        codes, _, errors = two_ranks(SHARDED_CLIP.replace("CLIP", line), "--output", "r.json")
        assert codes == [0, 0], errors
        assert [finding.rule for finding in join_reports(tmp_path).findings] == rules
