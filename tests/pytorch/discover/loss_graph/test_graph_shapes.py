"""Which shapes the graph of a loss written by hand shows to be stretched."""

import pytest
import torch

from diagnostics.collectors.pytorch.discover.loss_graph.graph_shapes import (
    chosen_against_row,
    difference_of,
    graph_nodes,
    overlap_of_raw_outputs,
    scrambled_views,
    stretched_operands,
    stretched_product,
)
from diagnostics.facts.loss import StretchedProduct

COLUMN, ROW = torch.randn(8, 1), torch.randn(8)


def answers(column):
    return (torch.ones(8, 3, requires_grad=True) @ torch.ones(3, 1))[:, :1] if column else answers(True).squeeze(1)


LOSSES = {
    "root": lambda p, y: torch.sqrt(torch.mean(torch.pow(p - y, 2))),
    "other way round": lambda p, y: (y - p).abs().mean(),
    "log-cosh": lambda p, y: torch.log(torch.cosh(p - y + 1e-12)).mean(),
    "root of a library's": lambda p, y: torch.sqrt(torch.nn.functional.mse_loss(p, y)),
    "weighted": lambda p, y: (torch.nn.functional.smooth_l1_loss(p, y, reduction="none") * 2).mean(),
    "by hand": lambda p, y: torch.where((p - y).abs() < 1, (p - y) ** 2, (p - y).abs()).sum(),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("column", [True, False])
def test_finds_a_column_less_a_row(loss, column):
    prediction, target = answers(column), ROW if column else COLUMN
    operands = stretched_operands(graph_nodes(loss(prediction, target)))
    assert operands == (tuple(prediction.shape),)
    found = difference_of(operands, prediction.detach(), target)
    assert (found.prediction, found.target, found.traced) == (tuple(prediction.shape), tuple(target.shape), False)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("column", [True, False])
def test_silent_on_equal_shapes(loss, column):
    assert stretched_operands(graph_nodes(loss(answers(column), COLUMN if column else ROW))) == ()


def test_silent_on_pairs_of_answers_and_on_other_squares():
    scores = answers(True)
    pairs = torch.relu(1 - (scores - scores.T)).mean()
    assert stretched_operands(graph_nodes(pairs)) == ()
    quantiles = (answers(True) - torch.linspace(0, 1, 5)).abs().mean()
    assert stretched_operands(graph_nodes(quantiles)) == ()
    kernel = torch.exp(
        -((answers(True) - ROW) ** 2)
    ).mean()  # with samples that the loader did not give as targets
    operands = stretched_operands(graph_nodes(kernel))
    assert difference_of(operands, answers(True).detach(), None) is None
    assert difference_of(operands, answers(True).detach(), COLUMN) is None
    assert difference_of(operands, torch.zeros(8, 2), ROW) is None


def test_finds_a_chosen_value_less_a_row_of_targets():
    values = torch.nn.Linear(3, 2)(torch.randn(8, 3))
    chosen = values.gather(1, torch.zeros(8, 1, dtype=torch.long))
    found = chosen_against_row(graph_nodes((chosen - ROW).pow(2).mean()))
    assert (found.prediction, found.target) == ((8, 1), (8,))
    assert chosen_against_row(graph_nodes((chosen - COLUMN).pow(2).mean())) is None
    assert (
        chosen_against_row(graph_nodes((answers(True) - ROW).pow(2).mean())) is None
    )  # may be all pairs, on purpose


def test_finds_the_squares_of_a_value_less_a_row_of_returns():
    value = torch.nn.Linear(3, 1)(torch.randn(8, 3))
    advantage = ROW - value
    found = chosen_against_row(graph_nodes(0.5 * advantage.pow(2).mean() + 1))
    assert (found.prediction, found.target) == ((8, 1), (8,))
    assert chosen_against_row(graph_nodes((ROW - value.squeeze(1)).pow(2).mean())) is None
    assert chosen_against_row(graph_nodes(torch.sigmoid(value - value.detach().T).mean())) is None  # a ranking


IMAGES = torch.randn(4, 3, 8, 10)
CONV = torch.nn.Conv2d(3, 5, 3, padding=1)
SERIES = torch.randn(4, 7, 3)
DENSE = torch.nn.Linear(3, 6)
SCRAMBLED = {
    "scores of pixels": lambda: CONV(IMAGES).view(-1, 5),
    "features of places": lambda: torch.relu(CONV(IMAGES)).view(4, 80, 5),
    "scores of steps": lambda: DENSE(SERIES).view(4, 6, 7),
    "states of a GRU": lambda: torch.nn.GRU(3, 5, batch_first=True)(SERIES)[0].reshape(4, 5, 7),
}
IN_ORDER = {
    "permuted": lambda: CONV(IMAGES).permute(0, 2, 3, 1).reshape(-1, 5),
    "flattened": lambda: CONV(IMAGES).flatten(1),
    "places in rows": lambda: CONV(IMAGES).view(4, 5, 80),
    "as many channels as columns": lambda: torch.nn.Conv2d(3, 10, 3, padding=1)(IMAGES).view(-1, 10),
    "transposed": lambda: DENSE(SERIES).transpose(1, 2).reshape(4, 6, 7),
    "unflattened": lambda: torch.nn.Linear(3, 42)(SERIES[:, 0]).view(4, 7, 6),
    "heads": lambda: DENSE(SERIES).view(4, 7, 2, 3),
    "rows of steps": lambda: DENSE(SERIES).reshape(-1, 6),
    "pairs of steps": lambda: torch.nn.Linear(3, 6)(torch.randn(4, 12, 3)).view(4, 6, 12),
}


@pytest.mark.parametrize("made", SCRAMBLED.values(), ids=SCRAMBLED)
def test_finds_a_view_in_place_of_a_permute(made):
    (view,) = scrambled_views(graph_nodes(made().log_softmax(-1).mean()))
    assert view.made == tuple(made().shape)


def test_finds_a_scrambled_view_before_a_layer():
    for layer in (torch.nn.Linear(5, 2), torch.nn.LSTM(5, 2), torch.nn.LSTM(5, 2, batch_first=True)):
        read = layer(torch.relu(CONV(IMAGES)).view(4, 80, 5))
        (view,) = scrambled_views(graph_nodes((read if isinstance(read, torch.Tensor) else read[0]).sum()))
        assert view.made == (4, 80, 5)


@pytest.mark.parametrize("made", IN_ORDER.values(), ids=IN_ORDER)
def test_silent_on_views_that_keep_places_together(made):
    assert scrambled_views(graph_nodes(made().log_softmax(-1).mean())) == ()


def test_silent_on_views_whose_rows_are_not_read_as_rows():
    flow, wanted = CONV(IMAGES).view(-1, 5), torch.randn(4, 5, 8, 10).view(-1, 5)
    assert scrambled_views(graph_nodes(torch.nn.functional.smooth_l1_loss(flow, wanted))) == ()
    assert (
        scrambled_views(graph_nodes(torch.nn.Linear(400, 2)(CONV(IMAGES).view(4, 80, 5).flatten(1)).sum())) == ()
    )


MASKS = (torch.rand(4, 1, 8, 10) > 0.5).float()


def overlap(outputs, masks):
    flat, wanted = outputs.view(-1), masks.view(-1)
    return 1 - (2 * (flat * wanted).sum() + 1) / (flat.sum() + wanted.sum() + 1)


def test_finds_an_overlap_of_raw_outputs():
    outputs = torch.nn.Conv2d(3, 1, 1)(IMAGES)
    assert overlap_of_raw_outputs(graph_nodes(overlap(outputs, MASKS))).shape == (4, 1, 8, 10)
    each = 1 - ((outputs * MASKS).sum((1, 2, 3)) + 1) / (outputs.sum((1, 2, 3)) + MASKS.sum((1, 2, 3)) + 1)
    assert overlap_of_raw_outputs(graph_nodes(each.mean())) is not None


def test_silent_on_an_overlap_of_probabilities_and_on_other_ratios():
    outputs = torch.nn.Conv2d(3, 1, 1)(IMAGES)
    for bounded in (outputs.sigmoid(), outputs.clamp(0, 1), CONV(IMAGES).softmax(1)[:, :1]):
        assert overlap_of_raw_outputs(graph_nodes(overlap(bounded.contiguous(), MASKS))) is None
        resized = torch.nn.functional.interpolate(bounded[..., ::2], size=(8, 10), mode="bilinear")
        assert overlap_of_raw_outputs(graph_nodes(overlap(resized, MASKS))) is None
        blurred = torch.nn.functional.conv2d(bounded, torch.full((1, 1, 3, 3), 1 / 9), padding=1)
        assert overlap_of_raw_outputs(graph_nodes(overlap(blurred, MASKS))) is None
    masked = ((outputs - MASKS).square() * MASKS).sum() / MASKS.sum()  # a mean over some places
    assert overlap_of_raw_outputs(graph_nodes(masked)) is None
    cosine = (outputs * MASKS).sum() / (outputs.norm() * MASKS.norm())
    assert overlap_of_raw_outputs(graph_nodes(cosine)) is None


def clipped(log_prob, advantage):
    ratio = torch.exp(log_prob - log_prob.detach())
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


PRODUCTS = {
    "REINFORCE": lambda log_prob, advantage: (-log_prob * advantage).mean(),
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
    values, numbers = answers(column), ROW if column else COLUMN
    found = stretched_product(graph_nodes(loss(values, numbers)))
    assert found == StretchedProduct(tuple(values.shape), tuple(numbers.shape))


@pytest.mark.parametrize("loss", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("column", [True, False])
def test_silent_on_a_product_of_equal_shapes(loss, column):
    assert stretched_product(graph_nodes(loss(answers(column), COLUMN if column else ROW))) is None


def test_silent_on_products_that_are_meant():
    scores = answers(True)
    assert stretched_product(graph_nodes((scores * scores.T).mean())) is None  # both are trained
    assert stretched_product(graph_nodes((scores * ROW.unsqueeze(0)).mean())) is None  # a row that was made one
    assert stretched_product(graph_nodes(torch.softmax(scores * ROW, 1).square().mean())) is None
    assert stretched_product(graph_nodes((scores * ROW).sum(1).square().mean())) is None
    weights = torch.randn(8, 1, requires_grad=True)
    assert stretched_product(graph_nodes((weights * ROW).mean())) is None
    masked = (scores * ROW * (COLUMN > ROW)).mean()
    assert stretched_product(graph_nodes(masked)) is None
    levels = (scores * torch.linspace(0, 1, 8)).mean()
    assert stretched_product(graph_nodes(levels)) is None
    few = (answers(True)[:5] * torch.linspace(0, 1, 5)).mean()  # five quantiles, and a batch of five
    assert stretched_product(graph_nodes(few)) is None
