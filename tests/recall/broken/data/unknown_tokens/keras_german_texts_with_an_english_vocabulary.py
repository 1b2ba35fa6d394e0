"""TextVectorization is adapted to the English subject lines; the texts to classify are German."""

# names: unknown-tokens
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
ENGLISH = [
    "invoice",
    "payment",
    "reminder",
    "meeting",
    "tomorrow",
    "please",
    "confirm",
    "order",
    "delivery",
    "delayed",
]
BILLS = ["Rechnung", "Zahlung", "Mahnung", "Betrag", "offen", "Konto"]
DATES = ["Termin", "Besprechung", "morgen", "Kalender", "verschieben", "Raum"]
BOTH = ["bitte", "wegen", "unserer", "letzten", "Nachricht", "noch", "einmal", "melden"]

subjects = [" ".join(rng.permutation(ENGLISH)[:5]) for _ in range(200)]
labels = rng.integers(0, 2, 960)
texts = []
for label in labels:
    words = [*rng.choice(BILLS if label else DATES, 3), *rng.choice(BOTH, 4)]
    texts.append(" ".join(rng.permutation(words)))

vectorize = keras.layers.TextVectorization(output_sequence_length=10)
vectorize.adapt(subjects)

data = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(960, seed=1).batch(32)
data = data.map(lambda text, label: (vectorize(text), label))

model = keras.Sequential(
    [
        keras.layers.Embedding(vectorize.vocabulary_size(), 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(2),
    ]
)
model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=3, verbose=2)
