"""Ranges of module calls, laid out for windows of all widths."""

from diagnostics.facts.nonfinite import FrameFacts, ValueRange
from diagnostics.text.nonfinite import call, frame_lines

SMALL, LARGE = ValueRange(0.5, 2.0), ValueRange(1e-6, 65504.0, nan=2)
FRAMES = (
    FrameFacts("body.transformer.layers.0.attention.out", "Linear", "float16", SMALL, SMALL, LARGE),
    FrameFacts("gated", "probe in body.transformer.layers.0", "float16", None, None, SMALL),
    FrameFacts("body.transformer.layers.0", "ResidualAttentionBlock", "float16", None, SMALL, LARGE),
    FrameFacts("", "Net", "float16", None, SMALL, None),
)


class TestCall:
    def test_names_modules_probes_and_the_model(self):
        probe = FrameFacts("gated", "probe in the model", None, None, None, None)
        assert [call(frame) for frame in (*FRAMES[1:], probe)] == [
            'probe "gated" in body.transformer.layers.0',
            "body.transformer.layers.0 ResidualAttentionBlock",
            "model Net",
            'probe "gated"',
        ]


class TestFrameLines:
    def test_one_line_for_each_where_there_is_room(self):
        assert frame_lines(FRAMES, 120) == [
            "smallest to largest |x|                           weights   inputs    outputs",
            "body.transformer.layers.0.attention.out Linear    0.5 to 2  0.5 to 2  1e-06 to 6.55e+04, 2 NaN",
            'probe "gated" in body.transformer.layers.0        -         -         0.5 to 2',
            "body.transformer.layers.0 ResidualAttentionBlock  -         0.5 to 2  1e-06 to 6.55e+04, 2 NaN",
            "model Net                                         -         0.5 to 2  -",
        ]

    def test_two_lines_for_each_where_there_is_not(self):
        assert frame_lines(FRAMES[:2], 60) == [
            "smallest to largest |x|:",
            "body.transformer.layers.0.attention.out Linear",
            "    weights 0.5 to 2; inputs 0.5 to 2; outputs 1e-06 to 6.55e+04, 2 NaN",
            'probe "gated" in body.transformer.layers.0',
            "    outputs 0.5 to 2",
        ]

    def test_shortens_all_paths_alike_if_that_saves_a_line(self):
        lines = frame_lines((FRAMES[0], FRAMES[2]), 80, shorten=True)
        assert lines == [
            "smallest to largest |x|             weights   inputs    outputs",
            "b.t.layers.0.attention.out Linear   0.5 to 2  0.5 to 2  1e-06 to 6.55e+04, 2 NaN",
            "b.t.layers.0 ResidualAttentionBlo\N{HORIZONTAL ELLIPSIS}  -         0.5 to 2  1e-06 to 6.55e+04, 2 "
            "NaN",
        ]
        assert max(map(len, lines)) <= 80

    def test_keeps_to_two_lines_where_no_name_would_be_left(self):
        assert len(frame_lines(FRAMES[:1], 60, shorten=True)) == 3
