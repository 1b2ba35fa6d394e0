"""Predictions of a sequence of batches, held against the labels that it was made of."""

import ast
import textwrap

import pytest

from diagnostics.collectors.source.mixed_passes import held_in

HELD = {
    "its classes": """
        test = ImageDataGenerator().flow_from_directory("test", batch_size=8)
        guessed = np.argmax(model.predict(test), axis=1)
        print(confusion_matrix(test.classes, guessed))
        """,
    "of one generator for both": """
        generator = ImageDataGenerator(rescale=1 / 255)
        train = generator.flow(x[:900], y[:900])
        test = generator.flow(x[900:], y[900:])
        print(confusion_matrix(np.argmax(y[900:], axis=1), model.predict(test).argmax(1)))
        """,
    "what it was given": """
        test = Batches(x_test, y_test, 32)
        guessed = model.predict(test).argmax(-1)
        print(classification_report(y_test, guessed))
        """,
    "a part of an array": """
        test = Batches(x[900:], y[900:])
        scores = model.predict(test)[:, 0]
        print(np.mean((scores > 0.5) == y[900:]))
        """,
    "by name, one-hot": """
        test = Batches(x_test, y=y_test)
        print(accuracy_score(np.argmax(y_test, axis=1), model.predict(test).argmax(1)))
        """,
}
APART = {
    "in its order": """
        test = Batches(x_test, y_test)
        guessed = model.predict(test).argmax(-1)
        print(classification_report(y_test[test.order], guessed))
        """,
    "of an array": """
        test = Batches(x_test, y_test)
        print(accuracy_score(y_test, model.predict(x_test).argmax(1)), len(test.classes))
        """,
    "re-created": """
        test = Batches(x_test, y_test)
        y_test = labels_in_order(test)
        print(accuracy_score(y_test, model.predict(test).argmax(1)))
        """,
    "another count": """
        test = Batches(x_test, 32)
        answers = model.predict(test)
        print(answers.sum() / 32)
        """,
    "shown beside each other": """
        test = Batches(x_test, y_test)
        answers = model.predict(test)
        print(answers.mean(), y_test.mean())
        """,
}


@pytest.mark.parametrize("source", HELD.values(), ids=HELD)
def test_labels_in_the_order_of_the_source(source):
    assert held_in(ast.parse(textwrap.dedent(source))) == {"<module>"}


@pytest.mark.parametrize("source", APART.values(), ids=APART)
def test_other_labels(source):
    assert held_in(ast.parse(textwrap.dedent(source))) == set()
