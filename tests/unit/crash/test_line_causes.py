"""What a line shows to be the cause: a value that is None, an index of another kind, a part that a file lacks."""

import numpy as np
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
    (
        "x = sample['input'].to(device)",
        "IndexError: too many indices for tensor of dimension 1",
        "sample is asked for 'input' by name",
    ),
    (
        'y = batch["label"]',
        "IndexError: only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer "
        "arrays are valid",
        "batch is asked for 'label' by name",
    ),
    (
        "crop = img[y:(y + size), x:(x + size), :]",
        "TypeError: only integer scalar arrays can be converted to a scalar index",
        "img is sliced, and one of the bounds",
    ),
]
PLAIN = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 8, in main\n    {}\n{}'
FORMS = [PLAIN, "\n".join(f"[rank0]: {line}" for line in PLAIN.split("\n"))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("line", "said", "told"), CASES, ids=[case[0] for case in CASES])
def test_the_line_tells_which_value_is_meant(line, said, told, form):
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


def test_a_live_none_is_told_as_a_pasted_one():
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


@pytest.mark.parametrize(
    ("line", "said", "rule"),
    [
        ("x = a[:, 0, 1]", "IndexError: too many indices for tensor of dimension 1", "shape-mismatch"),
        (
            "x = np.concatenate(a, b)",
            "TypeError: only integer scalar arrays can be converted to a scalar index",
            "mismatched-call",
        ),
    ],
)
def test_another_line_is_left_to_the_message(line, said, rule):
    (finding,) = explain(PLAIN.format(line, said)).findings
    assert finding.rule == rule
    assert "by name" not in finding.message
    assert "is sliced" not in finding.message


def test_a_live_index_is_told_as_a_pasted_one():
    sample = np.zeros(3)
    with pytest.raises(IndexError) as raised:
        sample["input"]
    (finding,) = explain(raised.value).findings
    assert "sample is asked for 'input' by name" in finding.message


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("line", "part", "holder"),
    [
        ("optimizer.load_state_dict(checkpoint['optimizer'])", "optimizer", "checkpoint"),
        ('start = ckpt["epoch"] + 1', "epoch", "ckpt"),
        ("model.load_state_dict(self.pretrained['model'])", "model", "self.pretrained"),
        ("scaler.load_state_dict(utils_state_dict['scaler'])", "scaler", "utils_state_dict"),
    ],
)
def test_the_line_shows_that_a_saved_file_is_asked(line, part, holder, form):
    (finding,) = explain(form.format(line, f"KeyError: '{part}'")).findings
    assert finding.rule == "unreadable-checkpoint"
    assert f"The file that {holder} was read from has no part '{part}'" in finding.message
    assert finding.fix == f"print({holder}.keys())"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("epoch = settings['epoch']", "epoch"),
        ("x = batch['image']", "image"),
        ("w = state_dict['layer1.0.weight']", "layer1.0.weight"),
        ("path = checkpoint_paths[name]", "best"),
    ],
)
def test_another_table_is_no_checkpoint(line, key):
    found = explain(PLAIN.format(line, f"KeyError: '{key}'")).findings
    assert [finding for finding in found if "was read from" in finding.message] == []


def test_a_live_checkpoint_is_told_as_a_pasted_one():
    checkpoint = {"model": {}}
    with pytest.raises(KeyError) as raised:
        checkpoint["optimizer"]
    (finding,) = explain(raised.value).findings
    assert "checkpoint was read from has no part 'optimizer'" in finding.message


@pytest.mark.parametrize(
    ("key", "told", "fix"),
    [
        (
            "conv.0.weight",
            "A model wrapped in DataParallel has 'module.' in front",
            "call model.load_state_dict(state) before",
        ),
        ("module.conv.weight", "DataParallel or DistributedDataParallel adds 'module.'", "state = {key.replace("),
    ],
)
def test_an_old_message_stops_at_the_first_key(key, told, fix):
    said = f"KeyError: 'unexpected key \"{key}\" in state_dict'"
    (finding,) = explain(PLAIN.format("model.load_state_dict(state)", said)).findings
    assert finding.rule == "checkpoint-keys-mismatch"
    assert "names only the first" in finding.message
    assert told in finding.message
    assert finding.fix.startswith(fix)
