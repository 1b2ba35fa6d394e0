"""Interfaces of this host."""

import sys

import pytest

from diagnostics.collectors.network.launcher import address_towards, chosen, interfaces, is_here, speed_of

HERE = {"lo": "127.0.0.1", "eth0": "10.0.0.2", "eth01": "10.0.0.3", "ib0": "10.1.0.2"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems are not asked")
def test_the_loopback_is_there_and_has_no_speed():
    assert interfaces()["lo"] == "127.0.0.1"
    assert speed_of("lo") is None


def test_packets_to_this_host_leave_by_the_loopback():
    assert address_towards("127.0.0.1", 29500) == "127.0.0.1"
    assert address_towards("no.such.host.invalid", 29500) == ""


def test_an_address_of_another_host_is_not_here():
    assert [is_here(host) for host in ("127.0.0.1", "192.0.2.1", "no.such.host.invalid")] == [True, False, None]


@pytest.mark.parametrize(
    ("named", "names"),
    [
        ("eth0", ["eth0", "eth01"]),
        ("=eth0", ["eth0"]),
        ("ib,eth01", ["eth01", "ib0"]),
        ("^lo,eth", ["ib0"]),
        ("^=eth0", ["lo", "eth01", "ib0"]),
        ("wlan", []),
    ],
)
def test_interfaces_are_named_as_nccl_does(named, names):
    assert chosen(named, HERE) == names
