"""What is said of an assertion that failed, from the condition in its line."""

import runpy

import pytest

from diagnostics.api.explain import explain
from diagnostics.collectors.tracebacks.python_errors import condition_of

CASES = [
    ("assert os.path.exists(args.config_file)", "There is no file or folder args.config_file."),
    ("assert self.root.is_dir(), 'no root'", "There is no file or folder self.root."),
    ("assert not os.path.exists(out_dir)", "out_dir is there already"),
    ("assert cfg.total_epochs == cfg.runner.max_epochs", "Two settings must agree, and do not: cfg.total_epochs"),
    ("assert len(images) == len(masks)", "images and masks belong together"),
    ("assert len(self.files) > 0", "self.files is empty, or 0"),
    ("assert len(parts) == 5", "parts has another number of entries than 5"),
    ("assert self.sep_idx not in self.src[index]", "self.sep_idx occurs in self.src[index] and must not"),
    ("assert mode in ['train', 'test']", "mode is not among ['train', 'test']"),
    ("assert dim % self.heads == 0", "dim is no multiple of self.heads"),
    ("assert isinstance(x, torch.Tensor)", "x is of another type than the code takes (torch.Tensor)"),
    ("assert args.weights is not None", "args.weights is None"),
    ("assert img is not None", "img is None: the image is not at that path"),
    ("assert self.left_image is not None", "self.left_image is None: the image is not at that path"),
    ("assert torch.cuda.is_available()", "PyTorch finds no GPU"),
    ("assert mmcv.__version__ >= '1.3'", "It compares releases"),
    ("assert x.shape == y.shape", "A shape is another than the code counts on"),
    ("assert (boxes[:, 2] >= boxes[:, 0]).all()", "A value lies outside of the range"),
    ("assert (boxes1[:, 2:] >= boxes1[:, :2]).all()", "Boxes of boxes1 end before they begin, or are NaN"),
    ("assert torch.isfinite(loss).all()", "A value is NaN or infinite"),
    ("assert False", "The code came to a branch that it does not provide for"),
    ("assert x.is_contiguous()", "x.is_contiguous() is false"),
    ("assert a == b or c == d", "Print its parts."),
]


@pytest.mark.parametrize(("line", "told"), CASES, ids=[line for line, _ in CASES])
def test_the_condition_tells_what_it_means(line, told):
    said = condition_of(line)
    assert told in said
    assert said.startswith("The condition does not hold: ")


@pytest.mark.parametrize("line", ["assert isinstance(", "raise ValueError(x)", "", "assertion failed", "assert "])
def test_a_line_without_a_whole_condition_tells_nothing(line):
    assert condition_of(line) is None


FRAME = '  File "/home/ada/train.py", line 7, in main\n    assert os.path.exists(args.config)\n'
PASTED = [
    f"Traceback (most recent call last):\n{FRAME}AssertionError",
    f"[rank0]: Traceback (most recent call last):\n[rank0]: "
    f"{FRAME.replace(chr(10), chr(10) + '[rank0]: ')}AssertionError",
    "assert os.path.exists(args.config)\nAssertionError",
]


@pytest.mark.parametrize("text", PASTED)
def test_it_is_told_however_it_is_pasted(text):
    assert "There is no file or folder args.config." in explain(text).crash.nature


def test_it_is_told_of_a_live_exception(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("parts = [1, 2]\nassert len(parts) == 5\n")
    with pytest.raises(AssertionError) as raised:
        runpy.run_path(str(script))
    report = explain(raised.value)
    assert (len(report.findings), "The condition" in report.crash.nature) == (0, True)
