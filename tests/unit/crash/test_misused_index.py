"""What an index was taken for, from the line that used it."""

import pytest

from diagnostics.api.explain import explain

PLAIN = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 8, in main\n    {}\n{}'
FORMS = [PLAIN, "\n".join(f"[rank0]: {line}" for line in PLAIN.split("\n"))]
CASES = [
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("line", "said", "told"), CASES, ids=[case[0] for case in CASES])
def test_the_line_tells_what_was_indexed(line, said, told, form):
    (finding,) = explain(form.format(line, said)).findings
    assert (finding.rule, told in finding.message) == ("mismatched-call", True)


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


def test_live_and_pasted_agree():
    numpy = pytest.importorskip("numpy")
    sample = numpy.zeros(3)
    with pytest.raises(IndexError) as raised:
        sample["input"]
    (finding,) = explain(raised.value).findings
    assert "sample is asked for 'input' by name" in finding.message
