"""Heat maps, as they are drawn: each cell is known."""

import html
import re

import numpy as np

from diagnostics.report.html.charts import Axis
from diagnostics.report.html.heat_map import Colours, grid_of, heat_map

LAYERS = ("embed", "body.<b>", "head")
# One layer gets no gradient, and one is NaN in the last step.
NORMS = np.array([[1.0, 0.0, 100.0]] * 5 + [[1.0, 0.0, np.nan]], dtype=np.float32)


def drawn_cells(figure, kind):
    """The corners of the cells drawn as `kind`: a class, or a colour."""
    found = re.findall(rf'<path (?:class|fill)="{kind}" d="([^"]*)"/>', figure.split('role="img"')[1])
    return [corner for d in found for corner in re.findall(r"M(\d+ \d+)h", d)]


class TestHeatMap:
    figure = heat_map(
        "Gradient norms", "norm", Axis(0, 5), LAYERS, np.arange(6), NORMS,
        np.array([True, True, True]),
    )  # fmt: skip

    def test_colours_the_smallest_darkest_and_the_largest_brightest(self):
        assert drawn_cells(self.figure, "#00224e") == ["0 0"]  # in one piece with its neighbours
        assert 'd="M0 0h6v1h-6z"' in self.figure
        assert drawn_cells(self.figure, "#fee838") == ["0 2"]
        assert 'd="M0 2h5v1h-5z"' in self.figure

    def test_marks_nan_and_zero_by_more_than_their_colour(self):
        assert drawn_cells(self.figure, "bad") == ["5 2"]
        assert drawn_cells(self.figure, "zero") == [f"{column} 1" for column in range(6)]
        assert '<path class="on" d="M5 2l1 1m0-1l-1 1"/>' in self.figure

    def test_leaves_a_layer_blank_that_was_not_measured(self):
        values = np.array([[1.0, np.nan]] * 3)
        seen = np.array([True, False])
        figure = heat_map("Updates", "share", Axis(0, 2), ("a", "b"), np.arange(3), values, seen)
        assert not re.search(r'd="M\d+ 1h', figure.split('role="img"')[1])
        assert "not measured" in figure

    def test_names_the_layers_and_gives_the_numbers_too(self):
        words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.figure)).split())
        assert "head 100 100 100 0 1" in words  # median, smallest, largest, its step, not finite
        assert "body.<b> 0 0 0 0" in words

    def test_the_scale_spans_most_of_the_values(self):
        assert Colours.of(np.array([[1e-3, 1.0, 50.0, np.nan, np.inf, 0.0]])) == Colours(-3, 2)
        assert Colours.of(np.array([[1e-30, 1.0, 50.0]])) == Colours(-10, 2)
        assert Colours.of(np.array([[np.nan]])) == Colours(-1, 0)

    def test_thins_out_to_the_largest_and_lets_no_nan_get_lost(self):
        values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 0.0], [4.0, 0.0]])
        place = np.array([0, 0, 1, 1])
        seen = np.array([True, True])
        assert grid_of(values, seen, place, 2, 1).tolist() == [[3.0, 5.0], [np.inf, 0.0]]
        assert grid_of(values, seen, place, 2, 2).tolist() == [[np.inf, 5.0]]
