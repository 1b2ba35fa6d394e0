"""`show_batch` reads Keras' data without moving its shuffling, and finds what encoded or scaled it."""

import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

import diagnostics

TEXTS = ["good film", "bad film", "a good good day", "a bad day"] * 4


def test_a_dataset_is_shown_and_its_order_stays():
    images = np.arange(20 * 16 * 16 * 3, dtype=np.uint8).reshape(20, 16, 16, 3)
    rescale = keras.layers.Rescaling(1 / 127.5, offset=-1)

    def scaled():
        data = tf.data.Dataset.from_tensor_slices((images, np.arange(20))).shuffle(20, seed=3).batch(8)
        return data.map(lambda image, label: (rescale(image), label % 3))

    shown, untouched = scaled(), scaled()
    (view,) = diagnostics.show_batch(shown).views
    assert (view.size, view.inputs[0].kind, view.targets[0].kind) == (8, "images", "classes")
    assert view.inputs[0].notes == ("undone for display: Rescaling, mean 127.5, std 127.5",)
    assert {pixels.tobytes() for pixels in view.inputs[0].values} <= {image.tobytes() for image in images}
    for _ in range(2):
        for (_, ours), (_, theirs) in zip(shown, untouched, strict=True):
            assert ours.numpy().tolist() == theirs.numpy().tolist()


def test_texts_and_their_tokens_are_shown():
    vectorize = keras.layers.TextVectorization(max_tokens=4, output_sequence_length=5)
    vectorize.adapt(TEXTS)
    data = tf.data.Dataset.from_tensor_slices((TEXTS, [1, 0, 1, 0] * 4)).batch(4)
    (raw,) = diagnostics.show_batch(data).views
    assert raw.inputs[0].texts == tuple(TEXTS[:4])
    tokens = diagnostics.show_batch(data.map(lambda text, label: (vectorize(text), label)))
    assert tokens.views[0].inputs[0].tokens.rows[1].tokens[0].role == "unknown"
    assert "[UNK]" in str(tokens)


def test_a_sequence_is_read_by_index():
    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return np.full((4, 7), index, np.float32), np.zeros(4, int)

    (view,) = diagnostics.show_batch(Rows()).views
    assert (view.inputs[0].kind, view.inputs[0].high) == ("table", 0)


def fitted(callback):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.random.rand(48, 7), np.random.rand(48)
    model.fit(x, y, batch_size=16, verbose=0, shuffle=False, callbacks=[callback])
    return x


def test_the_callback_keeps_the_first_batch():
    watching = diagnostics.KerasCallback(quiet=True)
    x = fitted(watching)
    (view,) = watching.report().batches
    assert (view.title, view.size, view.inputs[0].kind, view.targets[0].kind) == (
        "training",
        16,
        "table",
        "numbers",
    )
    assert np.allclose(view.inputs[0].values, x[:8])


def test_the_callback_keeps_no_row_where_the_settings_say_so(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.diagnostics]\nshow-batch = false\n")
    monkeypatch.chdir(tmp_path)
    watching = diagnostics.KerasCallback(quiet=True)
    fitted(watching)
    assert watching.report().batches == ()


FIT = """
import keras, numpy as np
model = keras.Sequential([keras.Input((7,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
x, y = np.random.rand(48, 7), np.random.rand(48)
model.fit(x, y, batch_size=16, verbose=0, validation_data=(x[:5], y[:5]))
"""


def test_diagnose_batch_shows_the_validation_data_next_to_the_training(tmp_path):
    (tmp_path / "train.py").write_text(FIT)
    command = [sys.executable, "-m", "diagnostics", "batch", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    titles = [line for line in done.stderr.splitlines() if line.startswith(("training:", "evaluation:"))]
    assert (done.returncode, len(titles), titles[-1]) == (0, 2, "evaluation: 5 rows"), done.stderr


def test_the_page_shows_the_first_batches(tmp_path):
    (tmp_path / "train.py").write_text(FIT)
    command = [sys.executable, "-m", "diagnostics", "run", "--output", "report.html", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    page = (tmp_path / "report.html").read_text()
    shown = [text in page for text in ("The first batch", "Training: ", "Evaluation: 5 rows")]
    assert shown == [True] * 3, done.stderr
