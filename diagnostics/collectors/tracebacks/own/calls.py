"""Calls that are often written wrongly: what they are named, and what they return."""

from __future__ import annotations

MISSPELT = {
    "backwards": "backward",
    "backword": "backward",
    "zero_grads": "zero_grad",
    "zerograd": "zero_grad",
    "squeze": "squeeze",
    "unsqueze": "unsqueeze",
    "transposed": "transpose",
    "reshaped": "reshape",
    "flattened": "flatten",
    "detached": "detach",
    "items": "item",
    "shapes": "shape",
    "to_list": "tolist",
    "argMax": "argmax",
    "require_grad": "requires_grad",
}
"""What a tensor or an optimizer is asked for, and what it is called."""
PARTS_OF = (
    (
        "pack_padded_sequence(",
        "A PackedSequence has four fields since PyTorch 1.1: pack_padded_sequence(...).data, in place of taking "
        "it apart into two.",
    ),
    (
        "findContours(",
        "cv2.findContours returns two values in OpenCV 2 and 4, and three in OpenCV 3: cv2.findContours(...)[-2] "
        "are the contours in each.",
    ),
    (
        "train_test_split(",
        "train_test_split returns two parts for every array that it is given: x_train, x_test, y_train, y_test "
        "for two arrays.",
    ),
)
"""Calls that do not return what they are taken apart into, and what they return."""
