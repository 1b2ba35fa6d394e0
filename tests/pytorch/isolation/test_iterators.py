"""`iterators_kept`: code uses copies of the iterators that it takes from outside, and what has none is named."""

import itertools
import queue

import pytest
from torch import nn

from diagnostics.collectors.isolation.iterators import iterators_kept

numbers = itertools.count()
stream = (number for number in range(100))
waiting = queue.Queue()


def numbered():
    return next(numbers)


class Counting(nn.Module):
    def forward(self, inputs):
        return inputs + self.number()

    def number(self):
        return numbered()


class TestIteratorsKept:
    def test_a_global_counter_goes_on_where_it_was(self):
        expected = next(numbers) + 1
        with iterators_kept(Counting()) as why:
            assert [numbered(), numbered()] == [expected, expected + 1]
        assert why is None
        assert next(numbers) == expected

    @pytest.mark.parametrize("make", [itertools.count, lambda: iter([0, 1, 2]), lambda: iter(range(3))])
    def test_one_in_a_closure_does_so_too(self, make):
        own = make()

        def draw():
            return next(own)

        with iterators_kept(draw) as why:
            assert [draw(), draw()] == [0, 1]
        assert why is None
        assert next(own) == 0

    def test_it_is_put_back_after_an_exception(self):
        kept = numbers
        with pytest.raises(ValueError, match="x"), iterators_kept(Counting()):
            raise ValueError("x")
        assert numbers is kept

    def test_a_generator_that_nobody_can_copy_is_named(self):
        class Streaming(nn.Module):
            def forward(self, inputs):
                return inputs + next(stream)

        with iterators_kept(Streaming()) as why:
            assert why == "it uses 'stream', a generator, which moves on when it is used"

    def test_a_queue_is_named(self):
        with iterators_kept(lambda inputs: inputs + waiting.get()) as why:
            assert why == "it uses 'waiting', a Queue, which moves on when it is used"

    def test_what_code_does_not_use_is_left_alone(self):
        with iterators_kept(nn.Linear(2, 2), lambda inputs: inputs) as why:
            assert why is None
