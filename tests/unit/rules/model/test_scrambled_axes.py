"""Unit tests of `ScrambledAxes`."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.inputs import SwappedChannels
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.facts.loss_graph import LEAF, LossGraph, Node, Operand, RowsRead, numbers_at_start
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.facts.where import Where
from diagnostics.facts.written import ReshapedArray, WrittenPatterns
from diagnostics.rules.model.scrambled_axes import ScrambledAxes
from tests.support.loss_graphs import graph_of, leaf, step


def viewed(shape, made, of="Convolution", by="LogSoftmax", before=None):
    """Judge a view of what an operation computed, that another then reads."""
    source = step(of, shape, leaf(*(before or shape)))
    view = step("View", made, step("Relu", shape, source))
    return ScrambledAxes().from_graph(graph_of(step("Mean", (), step(by, made, step("Clone", made, view)))))


def test_names_scores_of_pixels_that_are_no_scores_of_one_pixel():
    finding = viewed((16, 4, 12, 20), (3840, 4))
    assert (finding.rule, finding.severity, finding.stage) == ("scrambled-axes", "error", "model")
    assert finding.evidence == {"shape": [16, 4, 12, 20], "view": [3840, 4]}


def test_names_two_axes_that_were_to_be_exchanged():
    assert viewed((8, 10, 3), (8, 3, 10), of="Addmm", by="Mm").severity == "error"


@pytest.mark.parametrize(
    ("shape", "made", "options"),
    [
        ((16, 4, 12, 20), (16, 960), {}),
        ((16, 4, 12, 20), (16, 4, 240), {}),
        ((16, 20, 12, 20), (3840, 20), {}),
        ((16, 4, 12, 20), (3840, 4), {"of": "Permute"}),
        ((16, 4, 12, 20), (3840, 4), {"by": "MseLoss"}),
        ((8, 12, 6), (8, 6, 12), {"of": "Addmm"}),
        ((8, 10, 3), (8, 3, 10), {"of": "View", "before": (8, 30)}),
        ((None, 10, 3), (None, 3, 10), {"of": "Addmm"}),
    ],
    ids=["flattened", "in place", "ambiguous", "moved", "not rows", "pairs of steps", "unflattened", "open size"],
)
def test_silent_on_views_that_keep_places_together(shape, made, options):
    assert viewed(shape, made, **options) is None


def test_a_graph_without_views_says_nothing():
    with pytest.raises(NotApplicable):
        ScrambledAxes().from_graph(graph_of(step("Mean", (), leaf(8, 3))))


def messages(*reads, nodes=40, into=40, by="IndexAdd"):
    """Return the graph of layers that look up rows of the nodes, and add them to rows of others."""
    state = leaf(nodes, 8)
    for read in reads:
        looked_up = step("Index", (read, 8), state, rows=RowsRead(nodes, read, None))
        state = step("Add", (into, 8), step(by, (into, 8), step("Mul", (read, 8), looked_up)))
    return graph_of(step("Mean", (), state))


@pytest.mark.parametrize("by", ["IndexAdd", "ScatterAdd"])
def test_names_a_graph_network_with_two_messages(by):
    finding = ScrambledAxes().from_messages(messages(2, 2, by=by))
    assert (finding.severity, finding.evidence) == ("warning", {"nodes": 40, "messages": 2})


@pytest.mark.parametrize(
    "graph",
    [messages(150), messages(1), messages(150, 2), messages(2, nodes=8, into=8)],
    ids=["edges", "one row", "two roots", "few nodes"],
)
def test_silent_on_graphs_with_other_messages(graph):
    assert ScrambledAxes().from_messages(graph) is None


@pytest.mark.parametrize(
    "graph", [messages(2, into=2), messages(2, by="Mm"), messages()], ids=["pooled", "compared", "no lookup"]
)
def test_lookups_without_messages_say_nothing(graph):
    with pytest.raises(NotApplicable):
        ScrambledAxes().from_messages(graph)


def judge_flattened(scores, labels):
    given = {
        "input": Argument(np.zeros((288, 4)), None, unflattened=scores),
        "target": Argument(np.zeros(288, int), None, unflattened=labels),
    }
    return ScrambledAxes().from_calls(LossCalls((LossCall("cross_entropy", given),)))


def test_names_labels_of_other_places_than_the_scores():
    assert judge_flattened((9, 32, 4), (32, 9)).severity == "error"


def test_silent_where_both_have_one_order():
    assert judge_flattened((9, 32, 4), (9, 32)) is None
    assert judge_flattened((9, 9, 4), (9, 9)) is None


@pytest.mark.parametrize("scores", [None, (32, 9, 2, 2)])
def test_not_applicable_where_scores_were_not_flattened(scores):
    with pytest.raises(NotApplicable):
        judge_flattened(scores, (32, 9))


SERIES = np.random.default_rng(0).normal(size=(16, 10, 4)).astype("float32")


def of_first_layer(read, shape, series=SERIES):
    """The layer multiplies a constant with its weights."""
    operand = Operand(shape=shape, beginning=numbers_at_start(read))
    graph = LossGraph((Node("Addmm", (16, 8), (Operand(), operand, Operand(1))), Node(LEAF, (4, 8))))
    return ScrambledAxes().from_first_layer(graph, BatchFacts(16, {"x": series}))


@pytest.mark.parametrize(
    ("read", "shape"),
    [
        (SERIES.reshape(16, 4, 10), (16, 4, 10)),
        (SERIES.reshape(64, 10), (64, 10)),
        (SERIES.reshape(16, 4, 10).transpose(1, 0, 2).reshape(64, 10), (64, 10)),
    ],
    ids=["convolution", "linear", "recurrent"],
)
def test_names_inputs_that_are_viewed_before_the_first_layer(read, shape):
    finding = of_first_layer(read, shape)
    assert (finding.rule, finding.severity) == ("scrambled-axes", "warning")
    assert finding.evidence == {"shape": [16, 10, 4], "view": [16, 4, 10]}


@pytest.mark.parametrize(
    ("read", "shape", "series"),
    [
        (SERIES, (16, 10, 4), SERIES),
        (SERIES.reshape(160, 4), (160, 4), SERIES),
        (SERIES.reshape(16, 40), (16, 40), SERIES),
        (SERIES.transpose(0, 2, 1), (16, 4, 10), SERIES),
        (np.ones((16, 4, 10)), (16, 4, 10), np.ones((16, 10, 4), np.float32)),
    ],
    ids=["as it is", "by rows", "flattened", "transposed", "constant"],
)
def test_silent_on_a_first_layer_that_reads_the_axes_in_order(read, shape, series):
    assert of_first_layer(read, shape, series) is None


def test_needs_a_layer_that_reads_the_inputs():
    with pytest.raises(NotApplicable):
        ScrambledAxes().from_first_layer(LossGraph(()), BatchFacts(16, {"x": SERIES}))


def test_names_images_whose_rows_are_read_as_channels():
    finding = ScrambledAxes().from_images(SwappedChannels("conv2d", (32, 3, 16, 16)))
    assert finding.severity == "warning"


def pictures(count=16, side=32):
    """Return smooth colour images (n, height, width, 3)."""
    noise = np.random.default_rng(0).normal(size=(count, side + 8, side + 8, 3))
    for axis in (1, 2):
        sums = noise.cumsum(axis)
        noise = np.take(sums, range(8, sums.shape[axis]), axis) - np.take(sums, range(sums.shape[axis] - 8), axis)
    return noise.astype("float32")


def of_pixels(images):
    return ScrambledAxes().from_pixels(BatchFacts(len(images), {"0": images}))


def test_names_pictures_whose_channels_a_reshape_was_to_move_first():
    finding = of_pixels(pictures().reshape(16, 3, 32, 32))
    assert (finding.rule, finding.severity) == ("scrambled-axes", "warning")


def test_names_pictures_whose_channels_a_reshape_was_to_move_last():
    """As of CIFAR, whose files hold the channels first."""
    assert of_pixels(pictures().transpose(0, 3, 1, 2).reshape(16, 32, 32, 3)).severity == "warning"


def test_silent_on_pictures_in_order_and_on_noise():
    assert of_pixels(pictures().transpose(0, 3, 1, 2)) is None
    assert of_pixels(pictures()) is None
    assert of_pixels(np.random.default_rng(0).random((16, 3, 32, 32))) is None
    assert of_pixels(np.zeros((16, 3, 32, 32))) is None


def test_names_grey_pictures_of_three_equal_channels():
    assert of_pixels(np.repeat(pictures()[..., :1], 3, 3).reshape(16, 3, 32, 32)) is not None


def test_silent_on_few_or_small_or_grey_pictures():
    assert of_pixels(pictures(7).reshape(7, 3, 32, 32)) is None
    assert of_pixels(pictures(side=12).reshape(16, 3, 12, 12)) is None
    assert of_pixels(pictures()[..., :1].reshape(16, 1, 32, 32)) is None


def test_needs_images():
    with pytest.raises(NotApplicable):
        of_pixels(np.zeros((16, 8)))


def signals(count=32, channels=6, steps=50, noise=0.5, level=0.0):
    """Sines of random phases and frequencies, (count, channels, steps)."""
    rng = np.random.default_rng(0)
    speed, phase = rng.uniform(2, 4, (count, channels, 1)), rng.uniform(0, 7, (count, channels, 1))
    wave = np.sin(speed * np.linspace(0, 2 * np.pi, steps) + phase) + level * np.arange(channels)[:, None]
    return (wave + noise * rng.normal(size=wave.shape)).astype("float32")


def of_series(series):
    return ScrambledAxes().from_series(BatchFacts(len(series), {"0": series}))


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_names_signals_whose_channels_a_reshape_was_to_move_last(level):
    finding = of_series(signals(level=level).reshape(32, 50, 6))
    assert (finding.rule, finding.severity) == ("scrambled-axes", "warning")


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_names_signals_whose_channels_a_reshape_was_to_move_first(level):
    assert of_series(signals(level=level).transpose(0, 2, 1).reshape(32, 6, 50)).severity == "warning"


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_silent_on_signals_in_order(level):
    assert of_series(signals(level=level)) is None
    assert of_series(signals(level=level).transpose(0, 2, 1)) is None


def test_silent_on_a_long_signal_that_was_cut_into_patches():
    assert of_series(np.random.default_rng(0).normal(size=(32, 300)).cumsum(1).reshape(32, 50, 6)) is None


def test_silent_on_a_season_as_long_as_the_number_of_channels():
    """28 days of 7 shops: numbers 7 places apart are of the same weekday, except across two shops."""
    rng = np.random.default_rng(0)
    weeks = np.tile(rng.normal(size=(32, 7, 7)), 4) + 0.2 * rng.normal(size=(32, 7, 28))
    assert of_series(weeks) is None


def test_silent_on_blocks_of_columns_with_different_levels():
    blocks = np.repeat([0.0, 9.0, 3.0], 10) + np.random.default_rng(0).normal(size=(32, 10, 30))
    assert of_series(blocks) is None


def test_silent_on_few_constant_or_infinite_series():
    assert of_series(signals(7).reshape(7, 50, 6)) is None
    assert of_series(np.ones((32, 50, 6))) is None
    assert of_series(np.full((32, 50, 6), np.inf)) is None
    assert of_series(signals(steps=6)) is None


def test_needs_series():
    with pytest.raises(NotApplicable):
        of_series(np.zeros((16, 8)))


def judge_arrays(rows, *reshaped):
    batch = BatchFacts(8, {"x": np.zeros((8, *rows), np.float32)})
    return ScrambledAxes().from_arrays(WrittenPatterns(reshaped=reshaped), batch)


RESHAPED = ReshapedArray(("clips", "x"), ((500, 48, 4), (500, 4, 48)), Where("train.py", 12, "<module>"))


def test_names_an_array_that_was_reshaped_instead_of_transposed():
    finding = judge_arrays((4, 48), RESHAPED)
    assert (finding.severity, finding.where.line) == ("warning", 12)
    assert "x = clips.transpose(0, 2, 1)" in str(finding.fix)


def test_silent_on_an_array_that_the_model_does_not_get():
    assert judge_arrays((48, 4), RESHAPED) is None


def test_needs_a_reshaped_array():
    with pytest.raises(NotApplicable):
        judge_arrays((4, 48))
