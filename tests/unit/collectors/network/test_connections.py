"""Plain TCP connections between ranks, with real sockets on this host."""

import socket

import pytest

from diagnostics.collectors.network.collectives import Listener, Unreached, reach, reach_all


@pytest.fixture
def silent():
    """A port that takes no connection: its queue is full, as if a firewall dropped the packets."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


@pytest.fixture
def listener():
    listening = Listener(3, "job 1")
    yield listening
    listening.close()


class TestReach:
    def test_finds_the_peer(self, listener):
        assert reach(3, "127.0.0.1", listener.port, "job 1", 2) is None

    def test_does_not_take_another_rank_for_it(self, listener):
        place = f"127.0.0.1:{listener.port}"
        wrong = Unreached(2, "", f"{place}: another program answered")
        assert reach(2, "127.0.0.1", listener.port, "job 1", 2) == wrong
        assert reach(3, "127.0.0.1", listener.port, "job 2", 2) == Unreached(3, *(wrong.kind, wrong.text))

    def test_says_that_nothing_listens(self):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            assert reach(1, "127.0.0.1", port, "job", 2) == Unreached(1, "refused", f"127.0.0.1:{port}")

    def test_gives_up_after_the_limit(self, silent):
        assert reach(1, "127.0.0.1", silent, "job", 0.2) == Unreached(1, "no answer", f"127.0.0.1:{silent}")

    def test_tries_all_at_once(self, listener, silent):
        peers = [(1, "127.0.0.1", silent), (2, "127.0.0.1", silent), (3, "127.0.0.1", listener.port)]
        assert [one.peer for one in reach_all(peers, "job 1", 0.3)] == [1, 2]
