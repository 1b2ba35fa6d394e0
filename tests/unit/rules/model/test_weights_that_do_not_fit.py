"""What the names and shapes of saved weights tell where they do not fit the model."""

import pytest

from diagnostics.facts.crash.shapes import WeightsMisfit
from diagnostics.rules.shared.weights_fixes import of_weights


def told(**weights):
    seen, fix = of_weights(WeightsMisfit("Net", {name.replace("__", "."): pair for name, pair in weights.items()}))
    return seen, fix if isinstance(fix, str) else fix[0]


@pytest.mark.parametrize(
    ("name", "saved", "built"),
    [
        ("layers__0__blocks__1__attn_mask", (4, 64, 64), (64, 64, 64)),
        ("layers__0__blocks__1__attn__relative_position_bias_table", (169, 4), (529, 4)),
        ("blocks__2__attn__rel_pos_h", (27, 64), (127, 64)),
    ],
)
def test_masks_and_positions_belong_to_a_size_of_the_image(name, saved, built):
    seen, fix = told(**{name: (saved, built)})
    assert "is made for one size of the image and of the windows" in seen
    assert fix.startswith("build Net with the img_size and window_size of the checkpoint")


def test_one_pair_of_sizes_along_other_axes_counts_classes():
    seen, fix = told(
        up__weight=((192, 14, 2, 4, 4), (192, 4, 2, 4, 4)),
        up__bias=((14,), (4,)),
    )
    assert seen == "All of them have 14 where the model has 4: most often the number of classes."
    assert fix.startswith("own = model.state_dict()")


def test_other_sizes_are_another_model():
    assert told(a__weight=((8, 4), (16, 6)), b__weight=((3, 3), (9, 3)))[0] == ""


def test_a_head_beside_a_mask_is_still_a_head():
    seen, _ = told(head__weight=((10, 4), (2, 4)), head__bias=((10,), (2,)))
    assert seen == "Only the number of outputs of head differs."
