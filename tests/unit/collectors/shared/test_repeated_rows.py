"""What targets the same rows have when they come again."""

import numpy as np

from diagnostics.collectors.shared.repeated_rows import AT_ONCE, EACH, FOLLOWED, RowMemory

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 200)


def run(inputs, targets_of, epochs=4, size=20, orders=None):
    memory = RowMemory()
    for _ in range(epochs):
        memory.epoch_begins()
        order = np.random.default_rng(epochs).permutation(len(inputs)) if orders is None else orders()
        targets = targets_of(order)
        for start in range(0, len(inputs), size):
            rows = order[start : start + size]
            memory.take([inputs[rows]], targets[start : start + size])
    return memory.facts()


def test_labels_in_an_order_of_their_own_change():
    seen = run(X, lambda order: Y, orders=lambda: RNG.permutation(200))
    assert seen.rows == 200
    assert seen.compared == 600
    assert abs(seen.changed / seen.compared - seen.chance) < 0.1
    assert 0.9 < seen.apart < 1.1
    assert 0.85 < seen.nearby < 1.15
    assert seen.of_others > 0.9 * seen.changed


def test_images_with_a_blank_border_are_followed():
    images = np.zeros((200, 1, 28, 28), np.float32)
    images[:, :, 6:22, 6:22] = RNG.random((200, 1, 16, 16))
    seen = run(images, lambda order: Y, orders=lambda: RNG.permutation(200))
    assert (seen.rows, seen.compared) == (200, 600)
    assert seen.changed > 0.5 * seen.compared


def test_labels_that_follow_their_rows_stay():
    seen = run(X, lambda order: Y[order], orders=lambda: RNG.permutation(200))
    assert (seen.rows, seen.changed) == (200, 0)


def test_batches_of_one_row_have_no_neighbours():
    seen = run(X, lambda order: Y[order], size=1)
    assert (seen.rows, seen.changed, seen.nearby) == (200, 0, 0.0)


def test_quantities_of_other_rows_are_recognised_and_new_ones_are_not():
    values = RNG.normal(size=200)
    dealt = run(X, lambda order: values, orders=lambda: RNG.permutation(200))
    assert dealt.changed > 0.9 * dealt.compared
    assert dealt.of_others > 0.9 * dealt.changed
    made = run(X, lambda order: RNG.normal(size=200), orders=lambda: RNG.permutation(200))
    assert made.changed > 0.9 * made.compared
    assert made.of_others < 0.1 * made.changed


def test_rows_that_repeat_by_nature_are_left_out():
    assert run(RNG.integers(0, 3, (200, 4)).astype(np.float32), lambda order: Y) is None  # categories
    assert run(RNG.integers(0, 50, (200, 3)), lambda order: Y) is None  # a few ids
    levels = np.round(np.abs(X) * 2) / 3  # of a scale
    twice = np.concatenate([levels[:100], levels[:100]])
    assert run(twice, lambda order: Y) is None  # each of them twice in an epoch


def drawn_with_replacement(inputs, targets_of):
    memory = RowMemory()
    for _ in range(4):
        memory.epoch_begins()
        for _ in range(20):
            rows = RNG.integers(0, 200, 20)
            memory.take([inputs[rows]], targets_of(rows))
    return memory.facts()


def test_measurements_drawn_with_replacement_are_the_same_rows_again():
    seen = drawn_with_replacement(X, lambda rows: Y[RNG.integers(0, 200, 20)])
    assert seen.rows > 190
    assert abs(seen.changed / seen.compared - seen.chance) < 0.1
    assert drawn_with_replacement(X, lambda rows: Y[rows]).changed == 0


def test_levels_of_a_scale_repeat_by_nature():
    levels = np.round(np.abs(X) * 2) / 3
    assert drawn_with_replacement(levels, lambda rows: Y[RNG.integers(0, 200, 20)]) is None


def test_rows_that_repeat_now_and_then_within_a_short_epoch_do_so_by_nature():
    scaled = (np.array([*np.ndindex(5, 5, 5, 2)]) - 1.7).astype(np.float32)
    memory = RowMemory()
    for _ in range(40):
        memory.epoch_begins()
        rows = RNG.integers(0, len(scaled), 40)
        memory.take([scaled[rows]], RNG.integers(0, 2, 40))
    assert memory.facts() is None


def test_a_few_rows_do_not_tell_whether_they_repeat_by_nature():
    memory = RowMemory()
    for _ in range(20):
        memory.epoch_begins()
        memory.take([X[RNG.permutation(200)[:4]]], Y[:4])
    assert memory.facts() is None


def test_targets_that_are_one_of_several_alike_are_close():
    level = RNG.normal(size=200)
    seen = run(X, lambda order: level[order] + 0.2 * RNG.normal(size=200))
    assert seen.apart < 0.2


def test_rows_that_are_augmented_never_come_again():
    memory = RowMemory()
    for _ in range(3):
        memory.epoch_begins()
        memory.take([X + RNG.normal(size=X.shape).astype(np.float32)], Y)
    assert memory.facts() is None


def test_follows_a_bounded_number_of_rows_of_large_batches():
    many = RNG.normal(size=(20_000, 3)).astype(np.float32)
    labels = RNG.integers(0, 2, 20_000)
    memory = RowMemory()
    for _ in range(3):
        memory.epoch_begins()
        memory.take([many], labels)
    seen = memory.facts()
    assert AT_ONCE / 4 < seen.rows <= FOLLOWED
    assert seen.changed == 0


def test_targets_of_each_task_go_with_the_rows_of_the_task():
    places = RNG.uniform(-1, 1, (200, 2)).astype(np.float32)
    memory = RowMemory()
    for _ in range(12):
        memory.epoch_begins()
        order = RNG.permutation(200)
        memory.take([places[order]], np.sin(places[order] @ RNG.normal(size=2) + RNG.normal()))
    assert memory.facts().nearby < 0.5


def test_of_a_long_run_few_batches_are_wanted():
    memory = RowMemory()
    wanted = [memory.wants() for _ in range(100_000)]
    assert all(wanted[:EACH])
    assert sum(wanted) < 8 * EACH
    assert any(wanted[-2_000:])
