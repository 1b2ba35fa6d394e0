"""A failure, as the exception and as the text that Python prints of it."""

import traceback

import diagnostics
from diagnostics.collectors.crash.read import facts_of_exception, read_text


def failure(run):
    """Return the exception that `run` raises, with its traceback."""
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def printed(error):
    return "".join(traceback.format_exception(error))


def facts_of_text(text):
    """Read the facts of a crash, and its symptoms, from text."""
    _, *facts = read_text(text)
    return tuple(facts)


def symptom_of_text(text):
    """Read the one symptom of a crash from text."""
    _, symptom = facts_of_text(text)
    return symptom


def live(run):
    """Recognise a failure from the exception."""
    crash, *symptoms = facts_of_exception(failure(run))
    assert crash.live
    (symptom,) = symptoms
    return crash, symptom


def text(run):
    """Recognise the same failure from its text."""
    crash, *symptoms = facts_of_text(printed(failure(run)))
    assert not crash.live
    (symptom,) = symptoms
    return crash, symptom


def explained(error):
    """Explain a failure from the exception and from its text: the one finding of each."""
    reports = diagnostics.explain(error), diagnostics.explain(printed(error))
    assert [report.faults for report in reports] == [(), ()]
    (live,), (text,) = (report.findings for report in reports)
    assert live.where.function == text.where.function
    return live, text


def recognised(error):
    """Recognise a failure from the exception and from its text; None where nothing is."""
    found = facts_of_exception(error)[1:], facts_of_text(printed(error))[1:]
    return tuple(symptoms[0] if symptoms else None for symptoms in found)
