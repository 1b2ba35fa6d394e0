"""Which part a saved file lacks, from the key and the line that asked for it."""

import pytest

from diagnostics.api.explain import explain

PLAIN = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 8, in main\n    {}\n{}'
FORMS = [PLAIN, "\n".join(f"[rank0]: {line}" for line in PLAIN.split("\n"))]


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


def test_live_and_pasted_agree():
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
            "model.load_state_dict(state) before",
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
