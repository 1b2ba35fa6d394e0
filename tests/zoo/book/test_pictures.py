"""The pictures show the numbers that they are given."""

from __future__ import annotations

import math

from book import pictures
from book.panels import BLUE


def words(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_confusion_matrix_counts_labels_by_answer():
    figure = pictures.confusion([0, 0, 0, 1], [0, 0, 1, 1], ["no", "yes"])
    assert words(figure) == ["2\n67%", "1\n33%", "0\n0%", "1\n100%"]


def test_a_parameter_without_gradient_is_told_from_one_of_zero():
    figure = pictures.gradient_bars({"encoder": None, "head": 0.5, "bias": 0.0})
    assert words(figure) == ["None", "0"]
    assert len(figure.axes[0].patches) == 1


def test_losses_that_are_not_finite_are_set_apart():
    figure = pictures.by_label([0.7, 0.6, math.nan], [0, 1, 1], ["no", "yes"], "loss")
    finite, others = (each.get_offsets() for each in figure.axes[0].collections)
    assert (len(finite), len(others)) == (2, 1)
    assert others[0][0] > max(finite[:, 0])


def test_logits_below_the_limit_are_counted():
    figure = pictures.heard_by_the_loss({"trained": [[-1.0, -2.0, 3.0, -0.5]]}, limit=1e-7)
    assert figure.axes[0].get_title() == "trained: 75% cut off"


def test_a_batch_is_drawn_place_by_place():
    figure = pictures.token_grid({"as they come": [[1, 1], [1]], "padded": [[1, 1], [1, 0]]}, length=2)
    left, right = (axes.collections[0].get_array().ravel().tolist() for axes in figure.axes)
    assert left == [1, 1, 1, -1]
    assert right == [1, 1, 1, 0]


def test_the_parts_of_an_element_are_named():
    figure = pictures.structures({"what fit takes": [("inputs", ["ids", "mask"]), ("targets", ["labels"])]})
    assert words(figure) == ["inputs", "ids", "mask", "targets", "labels"]
    assert figure.axes[0].patches[0].get_edgecolor()[:3] == tuple(
        int(BLUE[at : at + 2], 16) / 255 for at in (1, 3, 5)
    )


def test_a_strip_of_tokens_shows_which_of_them_count():
    rows = {"the batch": [("Sort", "ignored"), ("\n", "ignored"), (" figs", "trained"), ("<pad>", "padding")]}
    figure = pictures.token_strip(rows)
    assert words(figure) == ["the batch", "Sort", "↵", "figs", "<pad>"]
    filled = [patch.get_facecolor()[:3] for patch in figure.axes[0].patches]
    assert len(set(filled[:2])) == 1
    assert len(set(filled)) == 3


def test_a_long_strip_goes_on_in_the_next_line():
    figure = pictures.token_strip({"a row": [("word", "trained")] * 5}, width=12)
    lines = [patch.get_y() for patch in figure.axes[0].patches]
    assert [round(line - lines[0]) for line in lines] == [0, 0, 1, 1, 2]
