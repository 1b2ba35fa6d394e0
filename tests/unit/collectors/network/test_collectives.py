"""The order of exchanges between pairs of ranks."""

import pytest

from diagnostics.collectors.network.collectives import partners


@pytest.mark.parametrize("world", [1, 2, 3, 4, 5, 8, 13])
def test_every_two_ranks_meet_once_and_in_the_same_round(world):
    # With an odd number one rank pauses in each round, so that rounds are told by their pairs.
    met = {rank: list(partners(rank, world)) for rank in range(world)}
    for rank, others in met.items():
        assert sorted(others) == [other for other in range(world) if other != rank]
    while any(met.values()):
        pairs = {(rank, others[0]) for rank, others in met.items() if others and met[others[0]][0] == rank}
        assert pairs  # or all wait for each other
        for rank, _ in pairs:
            met[rank].pop(0)
