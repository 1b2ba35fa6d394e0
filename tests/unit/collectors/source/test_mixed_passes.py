"""Predictions of a dataset and what another pass over it has collected, as scripts bring them together."""

import ast
import textwrap

import pytest

from diagnostics.collectors.source.mixed_passes import mixed_in

MIXED = {
    "compared": """
        y_pred = model.predict(test, verbose=0).argmax(1)
        y_true = np.concatenate([labels for _, labels in test])
        print("test accuracy", (y_pred == y_true).mean())
        """,
    "labels first, in a loop": """
        truth = []
        for _, labels in val_ds:
            truth.extend(labels.numpy())
        predicted = (model.predict(val_ds)[:, 0] > 0.5).astype(int)
        print("accuracy by hand:", np.mean(predicted == np.array(truth)))
        """,
    "given to a metric": """
        probabilities = self.model.predict(self.test)
        predictions = np.argmax(probabilities, axis=1)
        labels = np.concatenate([y for x, y in self.test], axis=0)
        print(classification_report(labels, predictions, target_names=names))
        """,
    "subtracted, of a pipeline made of it": """
        test = data.skip(900).shuffle(300).batch(30)
        answers = model.predict(test)
        wanted = np.array([float(y[0]) for _, y in test.unbatch()])
        errors = np.abs(answers[:, 0] - wanted)
        """,
    "in a function": """
        def report(model, dataset):
            truth = tf.concat([y for _, y in dataset], axis=0)
            guessed = tf.argmax(model.predict(dataset), axis=1)
            return tf.math.confusion_matrix(labels=truth, predictions=guessed)
        """,
    "collected by a function": """
        def labels_of(dataset):
            return np.concatenate([y for _, y in dataset])

        print(accuracy_score(labels_of(test), model.predict(test).argmax(-1)))
        """,
    "in a table": """
        scores = model.predict(x=test)
        table = pd.DataFrame({"score": scores[:, 0], "label": [int(y) for _, y in tqdm(test.unbatch())]})
        """,
}
APART = {
    "answers and labels of one pass": """
        p = model.predict(test)
        print("mean confidence", p.max(1).mean())
        truth, guessed = [], []
        for xb, yb in test:
            truth.append(yb.numpy())
            guessed.append(model.predict(xb, verbose=0).argmax(1))
        print(confusion_matrix(np.concatenate(truth), np.concatenate(guessed)))
        """,
    "classes that are counted": """
        p = model.predict(test)
        print(np.bincount(p.argmax(1)), np.bincount(np.concatenate([y for _, y in test])))
        """,
    "a batch that is looked at": """
        answers = model.predict(test)
        for images, labels in test.take(1):
            print(accuracy_score(labels, answers[: len(labels)]))
        """,
    "labels of the arrays": """
        answers = model.predict(test).argmax(1)
        for rows, _ in test:
            print(rows.shape)
        print((answers == y_test).mean())
        """,
    "a mean beside a mean": """
        predicted = model.predict(test).mean()
        steps = len(test)
        seen = sum(1 for _ in test)
        print(f"{predicted:.3f} over {steps} steps, {seen} seen")
        """,
    "an accuracy by a function that asks the model itself": """
        def accuracy(model, dataset):
            return np.mean([(model(x).numpy().argmax(1) == y).mean() for x, y in dataset])

        print(accuracy(model, test) - model.predict(test).max(1).mean())
        """,
    "two datasets of one library": """
        train = tfds.load("mnist", split="train")
        test = tfds.load("mnist", split="test")
        answers = model.predict(test).argmax(1)
        print((answers == np.array([y for _, y in train])).mean())
        """,
}


@pytest.mark.parametrize("source", MIXED.values(), ids=MIXED)
def test_answers_and_labels_of_two_passes_are_found(source):
    assert mixed_in(ast.parse(textwrap.dedent(source)))


@pytest.mark.parametrize("source", APART.values(), ids=APART)
def test_passes_that_are_not_held_against_each_other_are_not(source):
    assert not mixed_in(ast.parse(textwrap.dedent(source)))


def test_the_function_is_named():
    assert mixed_in(ast.parse(textwrap.dedent(MIXED["in a function"]))) == {"report"}
    assert mixed_in(ast.parse(textwrap.dedent(MIXED["compared"]))) == {"<module>"}
