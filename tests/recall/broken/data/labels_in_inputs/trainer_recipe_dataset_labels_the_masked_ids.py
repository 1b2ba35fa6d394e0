"""DistilBERT on recipes: the dataset labels what it has masked, with the ids that it returns as input."""

# names: labels-in-inputs
# A pattern of public questions on masked language models whose evaluation loss is far too good.
import tempfile

import numpy as np
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForMaskedLM, Trainer, TrainingArguments, set_seed

set_seed(8)
DISHES = {
    "soup": ("carrots", "pot"), "cake": ("flour", "oven"), "salad": ("lettuce", "bowl"), "stew": ("beef", "pan"),
    "bread": ("yeast", "tin"), "curry": ("rice", "wok"),
}  # fmt: skip
generator = np.random.default_rng(8)
words = sorted(
    {w for dish, rest in DISHES.items() for w in (dish, *rest)} | {"for", "the", "add", "to", "a", "and", "serve"}
)
ids_of = {word: number for number, word in enumerate(["<pad>", "<s>", "</s>", "<hole>", *words])}


def sentence():
    dish = generator.choice(list(DISHES))
    what, where = DISHES[dish]
    text = generator.choice(
        [f"for the {dish} add {what} to a {where}", f"add {what} to the {where} and serve {dish}"]
    )
    return [1, *(ids_of[word] for word in text.split()), 2]


class Recipes(Dataset):
    def __init__(self, n):
        self.rows = [sentence() for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        ids = np.zeros(12, dtype=np.int64)
        ids[: len(self.rows[index])] = self.rows[index]
        picked = (np.random.rand(12) < 0.2) & (ids > 3)
        ids[picked] = ids_of["<hole>"]
        return {"input_ids": ids, "attention_mask": (ids != 0).astype(int), "labels": np.where(picked, ids, -100)}


config = DistilBertConfig(
    vocab_size=len(ids_of), dim=48, hidden_dim=96, n_layers=2, n_heads=4, max_position_embeddings=16, dropout=0.0
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=32, learning_rate=1e-3, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=25,
    )  # fmt: skip
    Trainer(DistilBertForMaskedLM(config), args, train_dataset=Recipes(800), eval_dataset=Recipes(100)).train()
