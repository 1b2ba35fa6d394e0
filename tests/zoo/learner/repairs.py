"""Right repairs other than ours, as changes of our solutions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repair:
    """One repair: texts of our solution of a cage, and what stands in their place."""

    id: str
    name: str
    changes: tuple[tuple[str, str], ...]

    def applied(self, solution: str) -> str:
        """Return the script with this repair."""
        for old, new in self.changes:
            assert solution.count(old) == 1, old
            solution = solution.replace(old, new)
        return solution


LABELS_APART = """\
    columns = ["token_ids", "padding_mask"]
    return split.to_tf_dataset(
        columns=columns, label_cols="labels", batch_size=size, shuffle=shuffle
    )
"""
LABELS_SPLIT_OFF = """\
    columns = ["token_ids", "padding_mask"]
    whole = split.to_tf_dataset(columns=[*columns, "labels"], batch_size=size, shuffle=shuffle)
    return whole.map(lambda row: ({name: row[name] for name in columns}, row["labels"]))
"""
OWN_LOSS = """\
class WithItsOwnLoss(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.seen = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    def call(self, row):
        return self.inner({"token_ids": row["token_ids"], "padding_mask": row["padding_mask"]})

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        self.seen.update_state(x["labels"], y_pred)
        return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(x["labels"], y_pred, from_logits=True))


model = WithItsOwnLoss(model)
model.compile(optimizer=keras.optimizers.Adam(LEARNING_RATE))
"""
COMPILED = """\
model.compile(
    optimizer=keras.optimizers.Adam(LEARNING_RATE),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
"""
STEP = """\
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
"""
ZEROED_AFTERWARDS = """\
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""

REPAIRS = (
    Repair(
        "02",
        "a fixed length",
        (
            (
                "        truncation=True,\n",
                '        truncation=True,\n        padding="max_length",\n',
            ),
        ),
    ),
    Repair("04", "ask the data", (("num_labels=3", 'num_labels=raw["train"].features["label"].num_classes'),)),
    Repair("06", "a higher sound rate", (("Adam(5e-5)", "Adam(1e-4)"),)),
    Repair("06", "weight decay", (("Adam(5e-5)", "AdamW(6e-5, weight_decay=0.01)"),)),
    Repair("09", "split off afterwards", ((LABELS_APART, LABELS_SPLIT_OFF),)),
    Repair(
        "09",
        "a loss of the model's own",
        (
            ('columns=columns, label_cols="labels", batch', 'columns=[*columns, "labels"], batch'),
            (COMPILED, OWN_LOSS),
        ),
    ),
    Repair(
        "10",
        "a softmax in the model",
        (
            ("num_classes=3,", 'num_classes=3,\n    activation="softmax",'),
            ("keras.losses.SparseCategoricalCrossentropy(from_logits=True)", '"sparse_categorical_crossentropy"'),
        ),
    ),
    Repair("12", "the model zeroes", (("optimizer.zero_grad()", "model.zero_grad()"),)),
    Repair("12", "zeroed afterwards", ((STEP, ZEROED_AFTERWARDS),)),
    Repair(
        "15",
        "another architecture",
        (
            ("WIDTH, WIDTH, batch_first=True", "WIDTH, WIDTH, batch_first=True, bidirectional=True"),
            ("nn.Linear(WIDTH, CAMPAIGNS)", "nn.Linear(2 * WIDTH, CAMPAIGNS)"),
        ),
    ),
    Repair(
        "25",
        "inputs with a gradient",
        (
            ("NO_REENTRANT", "REENTRANT"),
            ("trained = [weight", "model.enable_input_require_grads()\ntrained = [weight"),
        ),
    ),
    Repair(
        "37",
        "a tokenizer that pads on the left",
        (
            ('        padding_side="left",  # so that each answer follows its prompt\n', ""),
            ("from_pretrained(MODEL)\n\n\ndef", 'from_pretrained(MODEL, padding_side="left")\n\n\ndef'),
        ),
    ),
)
