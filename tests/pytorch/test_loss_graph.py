"""The autograd graph of a loss, as plain nodes, and what rules find in those of real losses."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

from diagnostics.collectors.pytorch import loss_graph as collector
from diagnostics.collectors.pytorch.loss_graph import graph_nodes, loss_graph
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss_graph import LEAF, Operand, RowsRead, numbers_at_start
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.rules.gradient.ignored_output_gradient import IgnoredOutputGradient
from diagnostics.rules.gradient.undetached_target import UndetachedTarget
from diagnostics.rules.model.loss.broadcast_loss import BroadcastLoss
from diagnostics.rules.model.loss.logits_as_probabilities import LogitsAsProbabilities
from diagnostics.rules.model.loss.targets_out_of_reach import TargetsOutOfReach
from diagnostics.rules.model.scrambled_axes import ScrambledAxes
from diagnostics.rules.optimizer.loss_plateau import LossPlateau
from diagnostics.rules.shared.input_scale import may_be_the_cause
from diagnostics.run.observer import ScriptObserver

COLUMN, ROW = torch.randn(8, 1), torch.tensor([1.0, 3, 2, 5, 4, 0, 7, 6])


def graph_of(loss, **shapes):
    return dataclasses.replace(loss_graph(graph_nodes(loss)), **shapes)


def found(check, graph):
    """Return the evidence of a finding; None if there is none."""
    try:
        finding = check(graph)
    except NotApplicable:
        return None
    return finding and finding.evidence


class TestNodes:
    def test_name_operations_with_shapes_and_operands(self):
        layer = nn.Linear(3, 2)
        graph = graph_of((layer(torch.zeros(8, 3)) * 2.0).mean())
        mean, product, linear, *rest = graph.nodes
        assert (mean.operation, mean.shape, mean.operands) == ("Mean", (), (Operand(1, (8, 2)),))
        assert product.operands == (Operand(2, (8, 2)), Operand(shape=(), value=2.0))
        assert [operand.node is None for operand in linear.operands] == [False, True, False]
        assert [node.operation for node in rest] == [LEAF, "T", LEAF]

    def test_of_an_embedding_at_both_ends_of_edges(self):
        table, edges = nn.Embedding(9, 4), torch.randint(9, (30, 2))
        ends = edges.t()
        for first, second in [
            (table(edges[:, 0]), table(edges[:, 1])),
            (table.weight[ends[0]], table.weight[ends[1]]),
            ((table.weight * 2).index_select(0, ends[0]), (table.weight * 2)[ends[1]]),
        ]:
            pairs = graph_of((first * second).sum()).pairs
            shared = first.grad_fn.next_functions == second.grad_fn.next_functions
            assert [pair.tolist() for pair in pairs] == ([edges.tolist()] if shared else [])

    def test_of_users_and_items_that_are_no_pairs(self):
        users, items, rows = nn.Embedding(9, 4), nn.Embedding(9, 4), torch.randint(9, (30, 2))
        assert graph_of((users(rows[:, 0]) * items(rows[:, 1])).sum()).pairs == ()

    def test_a_tensor_that_is_read_twice_is_one_node(self):
        weight = torch.ones(3, requires_grad=True)
        graph = graph_of((weight * weight.detach() + weight).sum())
        assert [node.operation for node in graph.nodes].count(LEAF) == 1

    def test_of_constants_that_rise_and_that_do_not(self):
        weight = torch.ones(8, 1, requires_grad=True)
        of_rows = [graph_of((weight * row).sum()).nodes[1].operands[1] for row in (ROW, ROW.sort()[0])]
        assert of_rows == [Operand(shape=(8,), rises=False), Operand(shape=(8,), rises=True)]

    def test_measure_the_vectors_of_the_products_next_to_the_loss(self, monkeypatch):
        monkeypatch.setattr(collector, "PRODUCTS", 1)
        rows, columns = torch.eye(3, requires_grad=True), torch.full((3, 4), 2.0, requires_grad=True)
        products = [node for node in graph_of((rows @ (rows @ columns)).sum()).nodes if node.operation == "Mm"]
        lengths = [operand.lengths for operand in products[0].operands]
        assert lengths == [(1.0, 1.0), (pytest.approx(12**0.5),) * 2]
        assert products[1].operands[0].lengths is None

    def test_end_where_the_graph_is_too_large(self, monkeypatch):
        monkeypatch.setattr(collector, "MOST_NODES", 2)
        nodes = graph_of((torch.ones(3, requires_grad=True) * 2).exp().sum()).nodes
        assert [node.operation for node in nodes] == ["Sum", "Exp", "Unread"]
        assert nodes[1].operands == (Operand(2),)

    @pytest.mark.parametrize(
        ("look_up", "rows"),
        [
            (lambda out: out[torch.tensor([0, 1, 1, -4])], RowsRead(4, 4, {0: 2, 1: 2})),
            (lambda out: out.index_select(0, torch.tensor([3, 3])), RowsRead(4, 2, {3: 2})),
            (lambda out: out.index_select(1, torch.tensor([0, 1])), None),
            (lambda out: out[torch.tensor([True, False, True, False])], None),
            (lambda out: out[torch.arange(4), torch.tensor([0, 1, 1, 0])], None),
            (lambda out: out[:, torch.tensor([0, 1])], None),
        ],
        ids=["numbers", "index_select", "columns", "booleans", "one of each row", "numbers of columns"],
    )
    def test_hold_the_rows_that_are_looked_up(self, look_up, rows):
        graph = graph_of(look_up(nn.Linear(3, 2)(torch.zeros(4, 3))).mean())
        assert [node.rows for node in graph.nodes if node.operation in ("Index", "IndexSelect")] == [rows]

    def test_count_no_more_rows_than_can_be_few(self):
        graph = graph_of(nn.Linear(3, 2)(torch.zeros(40, 3))[torch.arange(40)].mean())
        assert graph.nodes[1].rows == RowsRead(40, 40, None)

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
    def test_of_nested_tensors_leave_out_what_has_no_size(self, layout):
        rows = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(5, 4)], layout=layout)
        result = nn.Linear(4, 2)(rows) * 2
        padded = torch.nested.to_padded_tensor(result, 0.0)
        (product,) = (node for node in graph_of(padded.sum()).nodes if node.operation == "Mul")
        assert product.shape in (None, (2, None, 2))

    def test_of_tensors_without_values_leave_these_out(self):
        with torch.device("meta"):
            loss = (torch.ones(3, requires_grad=True) * torch.ones(1)).sum()
        assert graph_of(loss).nodes[1].operands[1] == Operand()

    def test_read_nothing_that_a_hook_of_the_script_keeps(self):
        unpacked = []
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpacked.append):
            loss = (torch.ones(8, 1, requires_grad=True) * ROW).sum()
        assert (graph_of(loss).nodes[1].operands[1], unpacked) == (Operand(), [])


def answers(column):
    return (torch.ones(8, 3, requires_grad=True) @ torch.ones(3, 1))[:, :1] if column else answers(True).squeeze(1)


DIFFERENCES = {
    "other way round": lambda p, y: (y - p).abs().mean(),
    "root of a library's": lambda p, y: torch.sqrt(F.mse_loss(p, y)),
    "weighted": lambda p, y: (F.smooth_l1_loss(p, y, reduction="none") * 2).mean(),
    "by hand": lambda p, y: torch.where((p - y).abs() < 1, (p - y) ** 2, (p - y).abs()).sum(),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", DIFFERENCES.values(), ids=DIFFERENCES)
@pytest.mark.parametrize("column", [True, False])
def test_finds_the_difference_of_a_column_and_a_row(loss, column):
    prediction = answers(column)
    for target in (COLUMN, ROW):
        shapes = {"prediction": tuple(prediction.shape), "target": tuple(target.shape)}
        graph = graph_of(loss(prediction, target), **shapes)
        evidence = found(BroadcastLoss().from_difference, graph)
        assert (evidence is not None) == (prediction.ndim != target.ndim)


def test_finds_selected_values_and_linear_outputs_less_a_row():
    chosen = nn.Linear(3, 2)(torch.randn(8, 3)).gather(1, torch.zeros(8, 1, dtype=torch.long))
    value = nn.Linear(3, 1)(torch.randn(8, 3))
    for loss in ((chosen - ROW).pow(2).mean(), 0.5 * (ROW - value).pow(2).mean() + 1):
        assert found(BroadcastLoss().from_difference, graph_of(loss))["target_shape"] == [8]


def clipped(log_prob, advantage):
    ratio = torch.exp(log_prob - log_prob.detach())
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


PRODUCTS = {
    "summed": lambda log_prob, advantage: -(advantage * log_prob).sum(),
    "clipped": clipped,
    "divided": lambda log_prob, advantage: ((-log_prob * advantage) / 2).mean() * 0.5,
    "larger of two": lambda log_prob, advantage: torch.max(
        -advantage * log_prob, -advantage * log_prob.exp()
    ).mean(),
    "less an entropy": lambda log_prob, advantage: (-(log_prob * advantage) - 0.01 * log_prob.exp()).mean(),
}


@pytest.mark.parametrize("loss", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("column", [True, False])
def test_finds_a_column_times_a_row(loss, column):
    values = answers(column)
    for numbers in (COLUMN, ROW):
        evidence = found(BroadcastLoss().from_product, graph_of(loss(values, numbers)))
        assert (evidence is not None) == (values.ndim != numbers.ndim)


IMAGES, SERIES = torch.randn(4, 3, 8, 10), torch.randn(4, 7, 3)
CONV, DENSE = nn.Conv2d(3, 5, 3, padding=1), nn.Linear(3, 6)
SCRAMBLED = {
    "scores of pixels": lambda: CONV(IMAGES).view(-1, 5).log_softmax(-1),
    "scores of steps": lambda: DENSE(SERIES).view(4, 6, 7).log_softmax(-1),
    "states of a GRU": lambda: nn.GRU(3, 5, batch_first=True)(SERIES)[0].reshape(4, 5, 7).log_softmax(-1),
    "input of an LSTM": lambda: nn.LSTM(5, 2, batch_first=True)(torch.relu(CONV(IMAGES)).view(4, 80, 5))[0],
}
IN_ORDER = {
    "permuted": lambda: CONV(IMAGES).permute(0, 2, 3, 1).reshape(-1, 5).log_softmax(-1),
    "heads": lambda: DENSE(SERIES).view(4, 7, 2, 3).log_softmax(-1),
    "both scrambled": lambda: F.smooth_l1_loss(CONV(IMAGES).view(-1, 5), torch.randn(320, 5)),
}


@pytest.mark.parametrize("made", SCRAMBLED.values(), ids=SCRAMBLED)
def test_finds_a_view_in_place_of_a_permute(made):
    assert found(ScrambledAxes().from_graph, graph_of(made().mean())) is not None


@pytest.mark.parametrize("made", IN_ORDER.values(), ids=IN_ORDER)
def test_is_silent_on_views_that_keep_places_together(made):
    assert found(ScrambledAxes().from_graph, graph_of(made().mean())) is None


def overlap(outputs, masks):
    flat, wanted = outputs.view(-1), masks.view(-1)
    return 1 - (2 * (flat * wanted).sum() + 1) / (flat.sum() + wanted.sum() + 1)


def test_finds_an_overlap_of_raw_outputs_alone():
    outputs, masks = nn.Conv2d(3, 1, 1)(IMAGES), (torch.rand(4, 1, 8, 10) > 0.5).float()
    check = LogitsAsProbabilities().from_overlap
    assert found(check, graph_of(overlap(outputs, masks))) == {"shape": [4, 1, 8, 10]}
    each = 1 - ((outputs * masks).sum((1, 2, 3)) + 1) / (outputs.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1)
    assert found(check, graph_of(each.mean())) is not None
    for bounded in (outputs.sigmoid(), outputs.clamp(0, 1), CONV(IMAGES).softmax(1)[:, :1]):
        assert found(check, graph_of(overlap(bounded.contiguous(), masks))) is None
        resized = F.interpolate(bounded[..., ::2], size=(8, 10), mode="bilinear")
        assert found(check, graph_of(overlap(resized, masks))) is None


@pytest.mark.parametrize(
    ("scores_of", "expected"),
    [
        (lambda a, b: a @ b.t() * 0.07, 0.07),
        (lambda a, b: a @ b.t() / 20, 1 / 20),
        (lambda a, b: (torch.tensor(0.1) * (a @ b.T)).t(), 0.1),
        (lambda a, b: F.linear(0.5 * a, b) * 0.07, None),
        (lambda a, b: a @ b.t() * nn.Parameter(torch.tensor(-3.0)).exp(), None),
    ],
    ids=["multiplied", "divided", "transposed", "not of length 1", "learned"],
)
def test_finds_cosines_times_a_small_constant(scores_of, expected):
    one, other = (F.normalize(torch.randn(12, 5, requires_grad=True), dim=1) for _ in range(2))
    loss = F.cross_entropy(scores_of(one, other), torch.arange(12))
    evidence = found(LossPlateau().from_cosines, graph_of(2 * loss + 1))
    assert evidence == expected or evidence["factor"] == pytest.approx(expected)


STATE, REWARD, GOES_ON = torch.randn(2, 32, 6), torch.rand(32), torch.ones(32)
ACTION = torch.randint(0, 3, (32, 1))


def highest(net):
    return REWARD + 0.9 * net(STATE[1]).max(1)[0] * GOES_ON


def chosen(net):
    return net(STATE[0]).gather(1, ACTION).squeeze(1)


def squared_by_hand(net, _):
    return (highest(net) - net(STATE[0])[torch.arange(32), ACTION[:, 0]]).pow(2).mean()


@pytest.mark.parametrize(
    ("loss_of", "is_found"),
    [
        (lambda net, _: F.mse_loss(chosen(net), highest(net)), True),
        (squared_by_hand, True),
        (lambda net, other: F.mse_loss(chosen(net), highest(other)), False),
    ],
    ids=["highest", "by hand", "a target network"],
)
def test_finds_a_target_of_the_same_weights(loss_of, is_found):
    evidence = found(UndetachedTarget().from_graph, graph_of(loss_of(nn.Linear(6, 3), nn.Linear(6, 3))))
    assert evidence == ({"best": True, "weights": 2} if is_found else None)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x


class Derivative(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x


class Wrapped(Square):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return 2 * ctx.saved_tensors[0]


class Several(Square):
    @staticmethod
    def backward(ctx, *grads):
        return ctx.saved_tensors[0] + ctx.saved_tensors[0]


class Chained(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.saved_tensors[0] * grad_output


class WithinAFunction(Square):
    @staticmethod
    def backward(ctx, grad_output):
        def times(x):
            return x * grad_output

        return times(2 * ctx.saved_tensors[0])


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (Derivative, ["grad_output"]),
        (Wrapped, ["grad_output"]),
        (Several, ["grads"]),
        (Chained, None),
        (WithinAFunction, None),
    ],
)
def test_finds_a_backward_that_reads_no_gradient(function, given):
    loss = function.apply(torch.ones(4, 3, requires_grad=True)).sum()
    evidence = found(IgnoredOutputGradient().from_graph, graph_of(loss))
    assert evidence == (given and {"function": function.__name__, "given": given, "shape": [4, 3]})


EDGES = torch.randint(0, 40, (90, 2), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("edges", "named"), [(EDGES, True), (EDGES.T, False)], ids=["pairs", "both ends"])
@pytest.mark.parametrize("adds", ["index_add", "scatter_add", "index_put"])
def test_finds_messages_between_the_ends_of_two_edges(edges, named, adds):
    state = nn.Linear(6, 8)(torch.randn(40, 6))
    sent, end = nn.Linear(8, 8)(state[edges[0]]).relu(), edges[1]
    nothing = torch.zeros(40, 8)
    if adds == "index_put":
        received = nothing.index_put((end,), sent, accumulate=True)
    else:
        received = getattr(nothing, adds)(0, end if adds == "index_add" else end[:, None].expand_as(sent), sent)
    evidence = found(ScrambledAxes().from_messages, graph_of((state + received).square().mean()))
    assert evidence == ({"nodes": 40, "messages": 2} if named else None)


def test_the_graph_of_the_first_step_of_a_script_is_judged():
    run = ScriptObserver()
    try:
        model, inputs = nn.Linear(6, 3), torch.randn(32, 6)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (Derivative.apply(model(inputs)) - 1).pow(2).mean().backward()
            optimizer.step()
    finally:
        run.close()
    assert not run.faults
    (report,) = run.examined
    assert "ignored-output-gradient" in {finding.rule for finding in report.findings}
    assert report.not_applicable["undetached-target"] == "needs a target computed by the model"
    assert report.not_applicable["loss-plateau"] == "needs a trial of the learning rate"


def pixel_network(*, norm=True, around=False, convolution_bias=True):
    """Return the loss graph of raw pixels before a network, in which they may pass around its normalisation."""
    images, labels = torch.rand(8, 3, 6, 6) * 255, torch.arange(8) % 2
    stem = nn.Conv2d(3, 4, 3, padding=1, bias=convolution_bias)
    middle = nn.BatchNorm2d(4) if norm else nn.Identity()
    head = nn.Linear(144, 2)
    hidden = middle(stem(images)).relu()
    answers = head((hidden + images[:, :1] if around else hidden).flatten(1))
    return graph_of(F.cross_entropy(answers, labels))


class TestScaleOfInputs:
    FAR, TWO = LossFacts(9.0, "cross_entropy", 0.69), OutputFacts((8, 2), 2)

    @pytest.mark.parametrize("convolution_bias", [True, False])
    def test_a_normalisation_on_each_path_ends_it(self, convolution_bias):
        assert not may_be_the_cause(self.FAR, 0.69, self.TWO, pixel_network(convolution_bias=convolution_bias))

    @pytest.mark.parametrize("options", [{"norm": False}, {"around": True}])
    def test_it_reaches_the_predictions_past_none(self, options):
        assert may_be_the_cause(self.FAR, 0.69, self.TWO, pixel_network(**options))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv1d(10, 5, 3), (4, 10, 6)),
        (nn.LSTM(6, 5, batch_first=True), (4, 10, 6)),
        (nn.Linear(6, 5), (40, 6)),
    ],
    ids=["convolution", "recurrent", "linear"],
)
def test_the_first_numbers_that_a_layer_reads(layer, shape):
    inputs = torch.randn(4, 10, 6)
    made = layer(inputs)
    graph = loss_graph(graph_nodes((made[0] if isinstance(made, tuple) else made).sum()))
    (read,) = [operand for node in graph.nodes for operand in node.operands if operand.beginning]
    assert (read.shape, read.beginning) == (shape, numbers_at_start(inputs.numpy()))


def test_a_layer_that_reads_what_another_one_computed():
    graph = loss_graph(graph_nodes(nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3))(torch.randn(4, 6)).sum()))
    assert [operand.shape for node in graph.nodes for operand in node.operands if operand.beginning] == [(4, 6)]


def sizes(low, high, other_low, other_high):
    inner = torch.min(high, other_high) - torch.max(low, other_low)
    return inner, torch.max(high, other_high) - torch.min(low, other_low)


def of_slices(boxes, targets):
    return sizes(boxes[:, :2], boxes[:, 2:], targets[:, :2], targets[:, 2:])


def of_columns(boxes, targets):
    x1, y1, x2, y2 = boxes.unbind(1)
    left, top, right, bottom = targets.unbind(1)
    return *sizes(x1, x2, left, right), *sizes(y1, y2, top, bottom)


def of_pairs(boxes, targets):
    return sizes(boxes[:, None, :2], boxes[:, None, 2:], targets[:, :2], targets[:, 2:])


def corners(boxes):
    centre, size = boxes.chunk(2, dim=1)
    return torch.cat([centre - size / 2, centre + size / 2], dim=1)


class TestBoxes:
    SIZES = torch.rand(24, 2, generator=torch.Generator().manual_seed(0)) * 0.4 + 0.1
    CENTRES = SIZES / 2 + torch.rand(24, 2, generator=torch.Generator().manual_seed(1)) * (1 - SIZES)
    BOXES = torch.cat([CENTRES, SIZES], dim=1)

    def judge(self, loss, read, targets):
        boxes = nn.Linear(3, 4)(torch.rand(24, 3)).sigmoid()
        overlaps = loss(read(boxes), read(targets))
        return found(TargetsOutOfReach().from_overlap, graph_of(sum(one.clamp(min=0).mean() for one in overlaps)))

    @pytest.mark.parametrize("loss", [of_slices, of_columns, of_pairs])
    def test_centres_and_sizes_that_a_loss_reads_as_corners(self, loss):
        assert self.judge(loss, lambda boxes: boxes, self.BOXES)["inverted"] > 12

    @pytest.mark.parametrize("loss", [of_slices, of_pairs])
    def test_corners_that_a_loss_reads_as_centres_and_sizes(self, loss):
        assert self.judge(loss, corners, corners(self.BOXES))["outside"] > 6

    @pytest.mark.parametrize("loss", [of_slices, of_columns, of_pairs])
    @pytest.mark.parametrize(
        ("read", "targets"),
        [
            (lambda boxes: boxes, corners(BOXES)),
            (corners, BOXES),
            (corners, BOXES * 32),
            (corners, BOXES * torch.tensor([1.0, 1, 13, 13])),  # centres within a cell, sizes in cells
            (corners, BOXES * torch.tensor([1.0, 1, 3, 3])),  # beyond the image
            (lambda boxes: boxes, torch.zeros(24, 4)),
        ],
    )
    def test_silent_on_the_format_that_a_loss_reads(self, loss, read, targets):
        assert self.judge(loss, read, targets) is None

    def test_silent_on_a_number_that_is_kept_within_a_band(self):
        x, low = nn.Linear(3, 2)(torch.rand(24, 3)), torch.rand(24, 2)
        loss = (torch.maximum(x, low) - torch.minimum(x, low + 1)).mean()
        assert found(TargetsOutOfReach().from_overlap, graph_of(loss)) is None

    def test_silent_on_distances_to_the_four_edges(self):
        distances, targets = nn.Linear(3, 4)(torch.rand(24, 3)).exp(), torch.rand(24, 4)
        shared = torch.min(distances, targets)
        loss = ((shared[:, 0] + shared[:, 2]) * (shared[:, 1] + shared[:, 3])).mean()
        assert found(TargetsOutOfReach().from_overlap, graph_of(loss)) is None
