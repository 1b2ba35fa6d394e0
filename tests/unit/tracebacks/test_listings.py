"""Source that a notebook shows beside a message is no message."""

import diagnostics

LISTING = """I get this error: {said}

<ipython-input-76-52ca495a8e09> in <module>()
----> 1 model = load_model('./model_0.h5')

/opt/venv/lib/python3.5/site-packages/keras/models.py in load_model(filepath, sample_weight_mode)
    259                   loss_weights=loss_weights,
--> 260                   sample_weight_mode=sample_weight_mode)
"""


def test_names_in_the_source_are_not_taken_for_a_message():
    report = diagnostics.explain(LISTING.format(said="`ValueError: the ladder is too short`"))
    assert not report.findings
    assert report.crash.exception == "ValueError"


def test_a_message_beside_a_listing_is_found():
    said = "`ValueError: ('Unknown loss function', ':focal')`"
    (finding,) = diagnostics.explain(LISTING.format(said=said)).findings
    assert finding.rule == "unreadable-checkpoint"
    assert "focal" in finding.message
