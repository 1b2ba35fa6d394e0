"""Taking recorded batches apart into rows, of which some are held out."""

import numpy as np

from diagnostics.collectors.shared.experiments.experiment import FEWEST, rows_of


def batches(rows=120, size=20, times=3):
    x = np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)
    y = np.arange(rows) % 3
    cuts = [slice(start, start + size) for start in range(0, rows, size)] * times
    return [({"0": x[cut]}, y[cut]) for cut in cuts]


def test_a_row_that_comes_again_is_one_row():
    found = rows_of(batches())
    assert (len(found.target), found.inputs["0"].shape, len(found.batches)) == (120, (120, 4), 18)


def test_no_row_that_is_held_out_is_trained_on():
    found = rows_of(batches())
    assert len(found.held_out) == 30
    assert not set(found.held_out) & set(found.trained)
    assert len(found.held_out) + len(found.trained) == 120


def test_rows_keep_their_targets():
    found, given = rows_of(batches()), batches()
    kept = {row.tobytes(): target for row, target in zip(found.inputs["0"], found.target, strict=True)}
    assert all(kept[row.tobytes()] == target for x, y in given for row, target in zip(x["0"], y, strict=True))
    assert found.inputs["0"][found.first].tobytes() == given[0][0]["0"].tobytes()


def test_shuffling_deals_out_the_same_rows():
    found = rows_of(batches())
    shuffled = found.shuffled()
    assert [len(batch) for batch in shuffled.batches] == [len(batch) for batch in found.batches]
    assert np.array_equal(np.sort(np.concatenate(shuffled.batches)), np.sort(np.concatenate(found.batches)))
    assert not np.array_equal(shuffled.batches[0], found.batches[0])


def test_too_few_rows_are_not_taken_apart():
    assert "too few" in rows_of(batches(rows=4 * FEWEST - 4))


def test_batches_without_a_row_for_each_target_are_not_taken_apart():
    (inputs, target), *others = batches()
    assert "row for each target" in rows_of([(inputs, target[:-1]), *others])
    assert "differ in their inputs" in rows_of([({"0": inputs["0"], "1": inputs["0"]}, target), (inputs, target)])
    longer = {"0": np.pad(inputs["0"], [(0, 0), (0, 1)])}
    assert "shapes" in rows_of([(inputs, target), (longer, target)])
