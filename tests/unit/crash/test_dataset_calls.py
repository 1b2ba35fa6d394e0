"""What datasets, tokenizers and launchers say of rows, folders and ports, beside what resembles it."""

import pytest

from diagnostics.api.explain import explain


def rules(text):
    return [finding.rule for finding in explain(text).findings]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("IndexError: Invalid key: 250 is out of bounds for size 120", "refused-call"),
        ("IndexError: Invalid key: 250 is out of bounds for size 0", "emptied-dataset"),
        ("IndexError: Index 9 out of range for dataset of size 4.", "refused-call"),
    ],
)
def test_a_row_too_many_is_no_emptied_dataset(text, rule):
    assert rules(text) == [rule]


def test_an_empty_folder_is_not_one_that_was_saved():
    (finding,) = explain("EmptyDatasetError: The directory at /data/pears doesn't contain any data files").findings
    assert "/data/pears" in finding.message
    assert finding.fix.startswith("list the folder with ls")
    saved = "You are trying to load a dataset that was saved using `save_to_disk`."
    (finding,) = explain(f"ValueError: {saved}").findings
    assert finding.fix.startswith("for folders written by save_to_disk: load_from_disk(path)")


def test_a_port_that_is_taken_is_no_failure_of_the_network():
    said = "Tried to launch distributed communication on port `29500`, but another process is utilizing it."
    (finding,) = explain(f"ConnectionError: {said} Please specify a different port").findings
    assert finding.rule == "unusable-setting"
    assert finding.message.startswith("Port 29500 is in use")
    assert "--main_process_port" in finding.fix


def test_a_key_of_ones_own_is_no_row_of_a_tokenizer():
    assert rules("KeyError: 'Invalid key'") == []
