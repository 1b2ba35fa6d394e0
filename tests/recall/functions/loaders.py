"""`LoaderChecks`: loaders, transforms and collators."""

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

import diagnostics

from .case import cases, failed

CHECKS = diagnostics.LoaderChecks()
IMAGES = [np.random.default_rng(i).integers(0, 256, (6, 8, 3), dtype=np.uint8) for i in range(6)]


class Rows(Dataset):
    """Rows whose reading may draw, count or edit."""

    def __init__(self, read):
        self._rows, self._read = [np.full(4, i, dtype=np.float32) for i in range(32)], read

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, index):
        return self._read(self._rows[index])


def plain(row):
    return torch.from_numpy(row.copy())


def with_numpy_noise(row):
    return torch.from_numpy(row + np.random.normal(size=4).astype(np.float32))


def with_torch_noise(row):
    return torch.from_numpy(row) + torch.randn(4)


def scaled_in_place(row):
    row *= 0.5
    return torch.from_numpy(row.copy())


def to_tensor(image):
    return torch.from_numpy(image.copy()).permute(2, 0, 1).float() / 255


def to_image(tensor):
    return (tensor.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()


def to_image_without_permuting(tensor):
    return (tensor.reshape(6, 8, 3) * 255).round().to(torch.uint8).numpy()


def padded(rows):
    return pad_sequence(rows, batch_first=True)


def only_first(rows):
    return torch.stack([rows[0]] * len(rows))


def ragged():
    return [torch.arange(1, n + 2).float() for n in range(16)]


def seed_alike(_):
    np.random.seed(0)


def by_seed():
    return DataLoader(Rows(plain), 8, shuffle=True)


def by_clock():
    order = np.random.default_rng().permutation(32).tolist()
    return DataLoader(Rows(plain), 8, sampler=order)


def tokens(text):
    return [ord(letter) for letter in text]


def lower_tokens(text):
    return [ord(letter) for letter in text.lower()]


def text_of(ids):
    return "".join(map(chr, ids))


TEXTS = ["Is this a test?", "Yes", "and another one", "No!"]

CASES = [
    *cases(
        {
            "image to tensor and back": lambda: failed(lambda: CHECKS.round_trip(IMAGES, to_tensor, to_image)),
            "text to tokens and back": lambda: failed(lambda: CHECKS.round_trip(TEXTS, tokens, text_of)),
            "rows read twice": lambda: failed(lambda: CHECKS.same_item_twice(Rows(plain))),
            "evaluation rows": lambda: failed(lambda: CHECKS.no_augmentation(Rows(plain))),
            "padded batch": lambda: failed(
                lambda: CHECKS.batch_equals_items(DataLoader(ragged(), 4, collate_fn=padded))
            ),
            "tensors": lambda: failed(
                lambda: CHECKS.batch_equals_items(DataLoader(TensorDataset(torch.randn(32, 4)), 8))
            ),
            "workers that draw from torch": lambda: failed(
                lambda: CHECKS.distinct_workers(DataLoader(Rows(with_torch_noise), 8, num_workers=2))
            ),
            "seeded shuffle": lambda: failed(lambda: CHECKS.reproducible_order(by_seed)),
        },
        {
            "axes not put back": (
                lambda: failed(lambda: CHECKS.round_trip(IMAGES, to_tensor, to_image_without_permuting)),
                "Use permute or transpose",
            ),
            "case lost in the tokens": (
                lambda: failed(lambda: CHECKS.round_trip(TEXTS, lower_tokens, text_of)),
                "the tokenizer lower-cases",
            ),
            "row edited while read": (
                lambda: failed(lambda: CHECKS.same_item_twice(Rows(scaled_in_place))),
                "changes what the dataset stores",
            ),
            "noise on evaluation rows": (
                lambda: failed(lambda: CHECKS.no_augmentation(Rows(with_numpy_noise))),
                "Evaluation draws at random",
            ),
            "collator that repeats one row": (
                lambda: failed(lambda: CHECKS.batch_equals_items(DataLoader(ragged(), 4, collate_fn=only_first))),
                "it was cut off",
            ),
            "workers seeded alike": (
                lambda: failed(
                    lambda: CHECKS.distinct_workers(
                        DataLoader(Rows(with_numpy_noise), 8, num_workers=2, worker_init_fn=seed_alike)
                    )
                ),
                "in the same state",
            ),
            "order drawn without the seed": (
                lambda: failed(lambda: CHECKS.reproducible_order(by_clock)),
                "is not seeded",
            ),
        },
    )
]
