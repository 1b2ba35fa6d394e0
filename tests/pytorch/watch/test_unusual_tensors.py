"""Tensors that are sharded, stand for many or have no values: what cannot be read is not judged, and no fault."""

import pytest
import torch
from torch import nn

import diagnostics


def parts(report):
    return {stage.name: (stage.status, stage.detail) for stage in report.stages}


@pytest.fixture
def mesh(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        yield torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    finally:
        torch.distributed.destroy_process_group()


def run(mesh, broken_at=None, watched=True):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    if mesh is not None:
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    watch = diagnostics.watch(model, optimizer, every=2)
    for step in range(8):
        inputs = torch.randn(8, 4)
        if step == broken_at:
            inputs[2, 1] = float("nan")
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), torch.randint(3, (8,)))
        loss.backward()
        optimizer.step()
        watch.step(loss)
    watch.close()
    return watch.report()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch was built without torch.distributed")
class TestShardedParameters:
    def test_are_measured_as_those_of_one_process(self, mesh):
        sharded, plain = run(mesh), run(None)
        assert sharded.faults == ()
        assert sharded.history.gradients.norms.tolist() == pytest.approx(plain.history.gradients.norms.tolist())
        assert sharded.history.updates.ratios[0].tolist() == pytest.approx(
            plain.history.updates.ratios[0].tolist(), rel=1e-4
        )
        status, detail = parts(sharded)["gradients"]
        assert status == "passed"
        assert detail.endswith("of the shards of this process")

    def test_a_step_that_is_not_finite_is_located(self, mesh):
        report = run(mesh, broken_at=5)
        assert report.faults == ()
        assert report.origin is not None
        assert report.origin.step == 5


def watched(model, passes):
    """Watch some steps; `passes` makes the forward pass and returns a loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(3):
            optimizer.zero_grad()
            loss = passes(model)
            if loss is not None:
                loss.backward()
                optimizer.step()
            watch.step(loss)
    return watch.report()


class TestPassesThatCannotBeRead:
    def test_under_vmap_are_not_judged(self):
        report = watched(nn.Linear(4, 3), lambda model: torch.vmap(model)(torch.randn(5, 4)).square().mean())
        assert report.faults == ()
        assert parts(report)["forward passes"] == (
            "not judged",
            "inside torch.func (vmap, grad) a tensor represents many",
        )
        assert parts(report)["gradients"][0] == "passed"

    def test_of_a_functional_gradient_are_not_judged(self):
        def passes(model):
            weights = dict(model.named_parameters())
            inputs = torch.randn(5, 4)

            def loss(weights, row):
                return torch.func.functional_call(model, weights, (row,)).square().mean()

            grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, inputs)
            for name, parameter in model.named_parameters():
                parameter.grad = grads[name].mean(0)
            return None

        report = watched(nn.Linear(4, 3), passes)
        assert report.faults == ()
        assert parts(report)["forward passes"][0] == "not judged"

    def test_on_the_device_meta_or_fake_are_not_judged(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        def fake(model):
            with FakeTensorMode(allow_non_fake_inputs=True):
                model(torch.randn(5, 4))

        report = watched(nn.Linear(4, 3), fake)
        assert report.faults == ()
        assert parts(report)["forward passes"] == ("not judged", "the tensors of FakeTensorMode have no values")

        class Shapes(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 3)

            def forward(self, inputs):
                return inputs if inputs.is_meta else self.layer(inputs)

        def shapes(model):
            model(torch.empty(5, 4, device="meta"))

        report = watched(Shapes(), shapes)
        assert report.faults == ()
        assert parts(report)["forward passes"] == ("not judged", "tensors on the device meta have no values")

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    @pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=["jagged", "strided"])
    def test_nested_inputs_are_no_fault(self, layout):
        def passes(model):
            ragged = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(5, 4)], layout=layout)
            return torch.nested.to_padded_tensor(model(ragged), 0.0).square().mean()

        report = watched(nn.Linear(4, 3), passes)
        assert report.faults == ()
        assert parts(report)["gradients"][0] == "passed"

    def test_an_ordinary_pass_after_them_is_judged(self):
        def passes(model):
            torch.vmap(model)(torch.randn(5, 4))
            return model(torch.randn(5, 4)).square().mean()

        report = watched(nn.Linear(4, 3), passes)
        assert report.faults == ()
        assert parts(report)["forward passes"] == ("passed", "3, batches of up to 5")


class Batched(nn.Module):
    """Maps its layer over the rows by itself."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs):
        return torch.vmap(self.layer)(inputs)


class TestLayersThatCannotBeRead:
    def test_under_vmap_within_the_model_are_no_fault(self):
        report = watched(Batched(), lambda model: model(torch.randn(5, 4)).square().mean())
        assert report.faults == ()
        assert parts(report)["forward passes"][0] == parts(report)["gradients"][0] == "passed"


class TestLazyLayers:
    def test_a_lazy_head_that_a_step_has_not_reached_is_no_fault(self):
        model = nn.Module()
        model.body, model.head = nn.Linear(4, 3), nn.LazyLinear(2)
        with pytest.raises(diagnostics.InvalidInput, match="get their shape from the first batch"):
            diagnostics.watch(model, torch.optim.SGD(model.body.parameters(), lr=0.1))
