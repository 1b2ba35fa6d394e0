"""The curves that notebooks note for the symptoms page."""

import re

from nbformat.v4 import new_code_cell, new_notebook, new_output

from book.generated.curves import Curve, Line, curves_in, drawing
from book.panels import CURVE

RISEN = Line("training loss", ((1, 2.0), (2, 0.5), (3, 4.0)))
LOST = Line("training loss", ((10, 2.3), (20, 0.5), (30, None), (40, None)))


def noted(lines, chance=None, shape=""):
    output = new_output("display_data", {CURVE: {"lines": lines, "chance": chance, "shape": shape}})
    return new_notebook(cells=[new_code_cell(), new_code_cell(outputs=[output])])


def test_a_notebook_has_the_curves_that_it_has_noted():
    notebook = noted([["training loss", [[10, 2.3], [20, 0.5], [30, None], [40, None]]]], 2.3, "nan-later")
    assert list(curves_in(notebook)) == [Curve((LOST,), 2.3, "nan-later")]


def test_a_notebook_without_a_curve_has_none():
    assert list(curves_in(new_notebook(cells=[new_code_cell()]))) == []


def test_a_loss_that_has_risen_again_is_described_so():
    assert Curve((RISEN,), 2.3).described == (
        "Training loss from 2.00 to 4.00 in 3 steps, with a minimum of 0.50; a constant prediction scores 2.30."
    )


def test_a_loss_that_becomes_nan_is_described_so():
    assert Curve((LOST,)).described == "Training loss from 2.30 to 0.50 in 20 steps, then NaN."
    assert (
        Curve((Line("training loss", ((1, None), (30, None))),)).described
        == "Training loss is NaN in all 30 steps."
    )


def test_both_lines_are_drawn_and_described():
    drawn = drawing(Curve((RISEN, Line("validation <loss>", ((1, 1.0), (3, 2.0))))))
    assert drawn.count("<polyline") == 2
    assert "; validation &lt;loss&gt; from 1.00 to 2.00 in 3 steps" in drawn
    assert ">validation &lt;loss&gt;</text>" in drawn


def test_a_step_that_is_nan_is_a_cross_and_not_a_point():
    drawn = drawing(Curve((LOST,), 2.3))
    points = re.search('points="(.*?)"', drawn)[1].split()
    assert len(points) == drawn.count('class="lost"') == 2
    assert "nan" not in drawn.replace("NaN", "").lower()


def test_a_curve_of_nothing_but_nan_is_drawn():
    drawn = drawing(Curve((Line("training loss", tuple((step, None) for step in range(1, 31))),), 0.69))
    assert "<polyline" not in drawn
    assert 8 <= drawn.count('class="lost"') <= 12
