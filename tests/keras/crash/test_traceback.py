"""What is left of Keras' and TensorFlow's errors: the sentence, and the user's own line."""

import numpy as np
import pytest

import diagnostics
from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.collectors.tracebacks.tensorflow_format import unwrapped
from diagnostics.facts.crash import CrashFacts, FrameFacts
from tests.keras.fits import LABELS, X, keras, tf
from tests.support.crashes import failure, printed

pytestmark = pytest.mark.filterwarnings("ignore")


def crashes(error):
    """Return what is left of a failure, from the exception and from its text."""
    reports = diagnostics.explain(error), diagnostics.explain(printed(error))
    return [report.crash for report in reports]


def model(loss="mse", first=None, **options):
    built = keras.Sequential([*([first] if first else []), keras.layers.Dense(3)])
    built.compile("adam", loss, **options)
    return built


def flat(y_true, y_pred):
    """Compare what has lost its shape: only while it runs can it be seen that the sizes differ."""
    return tf.reduce_mean((tf.reshape(y_pred, [-1]) - tf.reshape(y_true, [-1])) ** 2)


def fit(data, **options):
    return failure(lambda: model(**options).fit(*data, verbose=0))


class Checked(keras.layers.Layer):
    def call(self, x):
        tf.debugging.assert_less(x, 0.0)
        return x


class TestGraphs:
    def test_the_sentence_comes_first_and_the_lines_of_the_list_are_frames(self):
        for crash in crashes(fit((X, LABELS), loss="sparse_categorical_crossentropy", first=Checked())):
            assert crash.first_line.startswith("assertion failed: [Condition x < y did not hold element-wise:]")
            assert "Graph execution error" not in crash.message
            assert "Detected at node" not in crash.message
            assert "[[{{node " in crash.message
            assert (crash.where.function, crash.unhide) == ("call", None)
            assert crash.where.file.endswith("test_traceback.py")

    def test_lines_that_the_traceback_has_too_are_not_repeated(self):
        for crash in crashes(fit((X, LABELS), first=Checked(), loss="sparse_categorical_crossentropy")):
            functions = [frame.function for frame in crash.frames if frame.yours]
            assert functions[-2:] == ["<lambda>", "call"]
            assert len(functions) == len(set(functions))

    def test_a_line_that_stays_hidden_is_shown_by_running_eagerly(self):
        error = fit((X, X[:, :2]), loss=flat, jit_compile=True)
        for crash in crashes(error):
            assert crash.first_line == "Incompatible shapes: [24] vs. [16]"
            assert (crash.where.function, crash.unhide) == ("<lambda>", "model.compile(..., run_eagerly=True)")
        assert "  The graph hides the failing line; model.compile(..., run_eagerly=True) shows it.\n" in str(
            diagnostics.explain(error)
        )
        for crash in crashes(fit((X, X[:, :2]), loss=flat, run_eagerly=True)):
            assert (crash.first_line, crash.where.function) == ("Incompatible shapes: [24] vs. [16]", "flat")
            assert crash.unhide is None

    def test_xla_cuts_the_front_of_a_path_off(self):
        def entropy(y, p):
            return tf.nn.softmax_cross_entropy_with_logits(y, p)

        live, text = crashes(fit((X, np.eye(2)[LABELS % 2]), loss=entropy, jit_compile=True))
        assert live.first_line == "Dimensions cannot be made to match through broadcasting"
        assert live.where == text.where
        assert live.where.function == "entropy"
        assert {frame.file for frame in live.frames if frame.function in ("entropy", "<lambda>")} == {
            live.where.file
        }

    @pytest.mark.parametrize("options", [{}, {"run_eagerly": True}], ids=["graph", "eager"])
    def test_a_line_in_a_function_of_the_dataset(self, options):
        def shifted(x, y):
            return x + tf.gather(x, y + 10), y

        rows = tf.data.Dataset.from_tensor_slices((X, LABELS)).map(shifted).batch(4)
        for crash in crashes(fit((rows,), **options)):
            assert crash.first_line == "indices = 10 is not in [0, 4)"
            assert crash.unhide == "tf.data.experimental.enable_debug_mode() before the dataset is made"

    def test_an_error_that_a_python_function_raised(self):
        def load(x):
            raise FileNotFoundError("cat.png")

        rows = tf.data.Dataset.from_tensor_slices(X).map(lambda x: tf.py_function(load, [x], tf.float32))
        for crash in crashes(failure(lambda: list(rows))):
            assert (crash.exception, crash.first_line) == ("FileNotFoundError", "cat.png")
            assert crash.where.function == "load"


class TestLayers:
    def test_a_layers_name_and_arguments_come_after_the_sentence(self):
        for crash in crashes(failure(lambda: keras.layers.Embedding(10, 4)(np.array([[12]])))):
            first, *rest = crash.message.splitlines()
            assert first == "indices[0,0] = 12 is not in [0, 10)"
            assert rest[:3] == ["[Op:GatherV2]", "In Embedding.call()", "Arguments received by Embedding.call():"]


class TestAutoGraph:
    def test_the_users_line_is_not_the_generated_one(self):
        @tf.function
        def step(x, y):
            return tf.reduce_mean((x - y) ** 2)

        for crash in crashes(failure(lambda: step(X, X[:, :2]))):
            assert (
                crash.first_line == "Dimensions must be equal, but are 4 and 2, with input shapes: [8,4], [8,2]."
            )
            assert crash.message.splitlines()[1] == "{{node sub}} = Sub[T=DT_FLOAT](x, y)"
            assert (crash.exception, crash.where.function) == ("ValueError", "step")
            assert crash.where.file.endswith("test_traceback.py")


class TestUnwrapped:
    FIT = FrameFacts("In[3]", 7, "<module>", "model.fit(x, y)", yours=True)

    def test_a_line_of_the_gradient_says_little(self):
        # Whether a clash of shapes strikes in the loss or in its gradient is a matter of chance.
        message = (
            "Graph execution error:\n\nDetected at node gradient_tape/compile_loss/loss/sub/BroadcastGradientArgs "
            'defined at (most recent call last):\n  File "/env/lib/python3.11/site-packages/keras/src/backend/'
            'tensorflow/trainer.py", line 81, in train_step\n\nIncompatible shapes: [48] vs. [32]'
        )
        handler = FrameFacts("keras/src/utils/traceback_utils.py", 122, "error_handler")
        crash = unwrapped(CrashFacts("InvalidArgumentError", message, (self.FIT, handler), live=True))
        assert crash.frames[2:] == (FrameFacts("keras/src/backend/tensorflow/trainer.py", 81, "train_step"),)
        assert (str(crash.where), crash.unhide) == ("In[3]:7", "model.compile(..., run_eagerly=True)")

    def test_a_function_that_diagnose_run_replaced_is_no_line(self):
        # The last node of a gradient is listed under the replaced GradientTape.gradient. Memory may end there.
        message = (
            "Graph execution error:\n\nDetected at node concat defined at (most recent call last):\n"
            '  File "/env/lib/python3.11/site-packages/keras/src/backend/tensorflow/trainer.py", line 81, in '
            f'train_step\n  File "{FROZEN}", line 127, in gradient\n\n'
            "OOM when allocating tensor with shape[6144,256]"
        )
        crash = unwrapped(CrashFacts("ResourceExhaustedError", message, (self.FIT,), live=False))
        assert crash.frames[1:] == (FrameFacts("keras/src/backend/tensorflow/trainer.py", 81, "train_step"),)
        assert crash.first_line == "OOM when allocating tensor with shape[6144,256]"

    def test_of_several_errors_the_first(self):
        # As TensorFlow joins the errors of several devices, which these tests do not have.
        message = (
            "Graph execution error:\n\n2 root error(s) found.\n  (0) INVALID_ARGUMENT:  indices[0] = 9 is not in "
            "[0, 4)\n\t [[{{node model/embedding/GatherV2}}]]\n  (1) CANCELLED:  Function was cancelled\n"
            "0 successful operations."
        )
        crash = unwrapped(CrashFacts("InvalidArgumentError", message, (self.FIT,), live=False))
        assert crash.first_line == "indices[0] = 9 is not in [0, 4)"

    @pytest.mark.parametrize(("function", "known"), [("<module>", True), ("loss", False)])
    def test_a_cell_of_a_notebook_goes_by_two_names(self, function, known):
        # A notebook's traceback says In[3]; the graph, made in the same process, names the cell's file.
        message = (
            "Graph execution error:\n\nDetected at node mse/sub defined at (most recent call last):\n"
            f'  File "/tmp/ipykernel_41/12.py", line 7, in {function}\n\nIncompatible shapes: [3] vs. [4]'
        )
        crash = unwrapped(CrashFacts("InvalidArgumentError", message, (self.FIT,), live=False))
        assert crash.first_line == "Incompatible shapes: [3] vs. [4]"
        assert str(crash.where) == ("In[3]:7" if known else "In[3]:7 in loss")

    @pytest.mark.parametrize(
        "message",
        [
            "Target 2 is out of bounds.",
            "",
            "CUDA error: device-side assert triggered\nCUDA kernel errors might be reported later.",
            "worker failed: ValueError: no\nTraceback (most recent call last):\n  File 'a.py'",
        ],
    )
    def test_leaves_other_messages_alone(self, message):
        crash = CrashFacts("RuntimeError", message, (self.FIT,), live=True)
        assert unwrapped(crash) is crash
