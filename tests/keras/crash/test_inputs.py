"""Real failures of Keras on TensorFlow that come of the inputs; the others are in `test_keras`."""

import functools

import numpy as np
import pytest

import diagnostics
from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.facts.crash.data import RaggedColumns, TextInInputs
from tests.keras.fits import (
    EAGER,
    GRAPH,
    LABELS,
    XLA,
    Subclassed,
    X,
    batches,
    fit,
    indices,
    keras,
    layers,
    sequential,
    tf,
)
from tests.support.crashes import explained, facts_of_text, failure, printed, recognised

pytestmark = pytest.mark.filterwarnings("ignore")
IDS = np.ones((8, 5), "int64")


def embedder(**options):
    model = keras.Sequential([layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(3)])
    model.compile("adam", indices(), **options)
    return model


class TestTokenBeyondEmbedding:
    @pytest.mark.parametrize("mode", [GRAPH, EAGER], ids=["graph", "eager"])
    def test_the_message_names_one_id_and_the_rows(self, mode):
        for finding in explained(failure(lambda: embedder(**mode).fit(IDS * 12, LABELS, verbose=0))):
            assert (finding.rule, finding.message) == (
                "token-ids-out-of-range",
                (
                    "This batch contains the id 12, but the embedding has 10 rows, for ids 0 to 9. If this is a "
                    "token id, the tokenizer has a larger vocabulary than the model."
                ),
            )

    def test_rows_of_another_table_are_another_matter(self):
        for symptom in recognised(failure(lambda: tf.gather(X, 12))):
            assert (symptom.rule, symptom.cause) == (
                "refused-call",
                "Index 12 was looked up in a tensor that has 8 rows, numbered from 0.",
            )


class TestRaggedColumns:
    IDS = [[1, 2, 3], [1, 2]]

    def test_lists_that_should_become_a_dataset(self):
        columns = {"input_ids": self.IDS, "attention_mask": [[1, 1, 1], [1, 1]]}
        live, text = explained(failure(lambda: tf.data.Dataset.from_tensor_slices((columns, [0, 1]))))
        assert live.message == (
            "The 2 examples differ in length: 2 or 3 values in input_ids and attention_mask. A tensor is "
            "rectangular, and nothing pads the shorter examples."
        )
        assert live.alternatives[-1] == 'keras.utils.pad_sequences(rows, padding="post")'
        assert text.message.startswith("Examples of different lengths cannot be stacked into one batch. A tensor")

    def test_rows_that_a_generator_yields(self):
        class Bag(Subclassed):
            def call(self, inputs):
                return self.head(tf.reduce_sum(tf.cast(inputs["ids"], tf.float32), axis=1, keepdims=True))

        def rows():
            yield from (({"ids": np.ones(n, "int32")}, 1) for n in (3, 4))

        specs = ({"ids": tf.TensorSpec((None,), tf.int32)}, tf.TensorSpec((), tf.int32))
        dataset = tf.data.Dataset.from_generator(rows, output_signature=specs).batch(2)
        ragged = RaggedColumns(clash=(3, 4))
        assert recognised(failure(lambda: list(dataset))) == (ragged, ragged)
        assert recognised(fit(Bag(3), dataset)) == (ragged, ragged)

    def test_rows_of_a_hugging_face_dataset(self):
        rows = pytest.importorskip("datasets").Dataset.from_dict({"input_ids": self.IDS, "labels": [0, 1]})
        dataset = rows.to_tf_dataset(columns=["input_ids"], label_cols=["labels"], batch_size=2)
        error = failure(lambda: embedder().fit(dataset, verbose=0))
        assert recognised(error) == (RaggedColumns(), RaggedColumns())
        for crash in (facts_of_exception(error)[0], facts_of_text(printed(error))[0]):
            assert (crash.exception, crash.message.splitlines()[0]) == (
                "ValueError",
                "all input arrays must have the same shape",
            )
            assert crash.where.function == "<lambda>"

    @pytest.mark.parametrize("rows", [IDS, np.array(IDS, dtype=object)], ids=["lists", "objects"])
    def test_rows_given_to_fit_as_they_are(self, rows):
        live, _ = recognised(failure(lambda: embedder().fit(rows, np.array([0, 1]), verbose=0)))
        assert live == RaggedColumns({"the examples": (3, 2)})


class TestTextInInputs:
    TEXT = np.array([["a b"], ["c"]])

    @pytest.mark.parametrize("mode", [GRAPH, EAGER, XLA], ids=["graph", "eager", "XLA"])
    def test_text_in_a_model_with_an_embedding(self, mode):
        class Encoder(Subclassed):
            def __init__(self):
                super().__init__(3)
                self.embedding = layers.Embedding(10, 4)

            def call(self, inputs):
                return self.head(tf.reduce_mean(self.embedding(inputs["text"]), axis=1))

        live, text = recognised(fit(Encoder(), batches(({"text": self.TEXT}, [0, 1])), mode=mode))
        assert live == TextInInputs(("text",), reads_tokens=True)
        if mode is XLA:  # whose message has no word of text
            assert text.rule == "refused-call"
        else:
            assert text == TextInInputs(reads_tokens=True)

    def test_arrays_and_lists_of_text(self):
        for text in (self.TEXT, ["a b", "c"]):
            (finding,) = diagnostics.explain(
                failure(lambda text=text: embedder().fit(text, np.array([0, 1]), verbose=0))
            ).findings
            assert finding.rule == "untokenized-dataset"
            assert finding.message == (
                "The rows contain plain text, but the model expects token ids: the dataset was never tokenized, "
                "or the raw dataset was passed instead of the tokenized one."
            )

    def test_labels_or_categories_that_are_text_are_no_rows_to_tokenize(self):
        words = np.array(["cat", "dog"] * 4)
        found = [*recognised(fit(sequential(3), X, words))]
        for mode in (GRAPH, EAGER):
            found += recognised(fit(embedder(), batches((IDS, words)), mode=mode))
        found.append(recognised(fit(sequential(3), batches((np.stack([words] * 4, 1), LABELS))))[0])
        assert {symptom.rule for symptom in found if symptom is not None} == {"dtype-mismatch"}


@functools.cache
def hub_failure(outputs, in_inputs=False, length=5, token=1):
    hub = pytest.importorskip("keras_hub")
    backbone = hub.models.DistilBertBackbone(
        vocabulary_size=50, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, max_sequence_length=16
    )
    model = hub.models.DistilBertTextClassifier(backbone, num_classes=outputs, preprocessor=None)
    tokens = np.full((8, length), token)
    inputs = {"token_ids": tokens, "padding_mask": np.ones_like(tokens)}
    rows = {**inputs, "labels": LABELS} if in_inputs else (inputs, LABELS)
    return fit(model, tf.data.Dataset.from_tensor_slices(rows).batch(8))


class TestKerasHub:
    def test_labels_among_the_inputs(self):
        for finding in explained(hub_failure(3, in_inputs=True)):
            assert finding.rule == "labels-in-inputs"
            assert finding.message.startswith(
                'The loss gets no target: "labels" is among the inputs (token_ids, padding_mask and labels), which'
            )

    @pytest.mark.exhaustive
    def test_tokens_past_the_vocabulary_and_rows_past_the_positions(self):
        for finding in explained(hub_failure(3, token=99)):
            assert finding.message.startswith("This batch contains the id 99, but the embedding has 50 rows")
        for finding in explained(hub_failure(3, length=20)):
            assert finding.message.startswith("The sequence has 20 tokens")
