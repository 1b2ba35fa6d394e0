"""Which value is None, from the line that used it."""

import pytest

from diagnostics.api.explain import explain

ATTRIBUTE = "AttributeError: 'NoneType' object has no attribute '{}'"
INDEXED = "TypeError: 'NoneType' object is not subscriptable"
CASES = [
    (
        "self.first.bias.data.fill_(0)",
        ATTRIBUTE.format("data"),
        "self.first.bias is None: the layer was made without",
    ),
    ("m.weight.data.fill_(1)", ATTRIBUTE.format("data"), "m.weight is None: the layer was made without weights"),
    ("total += p.grad.data.norm()", ATTRIBUTE.format("data"), "p.grad is None: no backward pass"),
    (
        "m.running_mean.zero_()",
        ATTRIBUTE.format("zero_"),
        "m.running_mean is None: the batch norm keeps no running",
    ),
    ("x = int(box.find('xmin').text)", ATTRIBUTE.format("text"), "box has no element 'xmin'"),
    (
        "r = os.environ.get('RANK').strip()",
        ATTRIBUTE.format("strip"),
        "The environment variable 'RANK' is not set",
    ),
    (
        "im = cv2.imread('data/images' + name)[:, :, ::-1]",
        INDEXED,
        "cv2.imread('data/images' + name) is None: OpenCV found no image",
    ),
    (
        "h, w = cv2.imread(os.path.join(root, name)).shape[:2]",
        ATTRIBUTE.format("shape"),
        "cv2.imread(os.path.join(root, name)) is None: OpenCV found no image",
    ),
    ("return img[:, :, ::-1]", INDEXED, "img is None: the image was not read"),
    ("x = self.left_image[:, :, 0] / 255", INDEXED, "self.left_image is None: the image was not read"),
    ("a = meta.get('size')[0]", INDEXED, "meta.get('size') is None: there is no entry 'size'"),
    ("if args.mode.lower() == 'fit':", ATTRIBUTE.format("lower"), "args.mode is None: the setting was not given"),
    ("size = cfg.sizes[0]", INDEXED, "cfg.sizes is None: the setting was not given"),
    (
        "path = cfg.data.root + '/train'",
        "TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",
        "cfg.data.root is None",
    ),
    (
        "path = os.path.join(args.root, 'x')",
        "TypeError: expected str, bytes or os.PathLike object, not NoneType",
        "args.root is None",
    ),
]
PLAIN = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 8, in main\n    {}\n{}'
FORMS = [PLAIN, "\n".join(f"[rank0]: {line}" for line in PLAIN.split("\n"))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("line", "said", "told"), CASES, ids=[case[0] for case in CASES])
def test_the_line_tells_which_value_is_none(line, said, told, form):
    (finding,) = explain(form.format(line, said)).findings
    assert finding.rule == "mismatched-call"
    assert told in finding.message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("config.update(x)", ATTRIBUTE.format("update")),
        ("for row in results:", "TypeError: 'NoneType' object is not iterable"),
        ("a = left + args.right", "TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'"),
        ("x = args.a[0] + args.b[0]", INDEXED),
        ("args.root", "TypeError: 'int' object is not iterable"),
    ],
)
def test_a_line_that_does_not_show_it_is_not_guessed(line, said):
    assert [f.rule for f in explain(PLAIN.format(line, said)).findings] == []


def test_live_and_pasted_agree():
    class Layer:
        bias = None

    layer = Layer()
    with pytest.raises(AttributeError) as raised:
        layer.bias.data.fill_(0)
    (finding,) = explain(raised.value).findings
    assert finding.rule == "mismatched-call"
    assert (
        "Layer().bias is None: the layer was made without a bias" in finding.message or "bias" in finding.message
    )


def test_an_image_that_was_not_read_is_still_told_as_one():
    (finding,) = explain(PLAIN.format("h, w = image.shape[:2]", ATTRIBUTE.format("shape"))).findings
    assert "cv2.imread" in finding.message
