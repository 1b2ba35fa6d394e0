import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.network import NetworkFacts, RankFacts
from diagnostics.rules.distributed.mixed_versions import MixedVersions


def network(*versions):
    ranks = tuple(RankFacts(number, f"node-{number}", 7, versions=v) for number, v in enumerate(versions))
    return NetworkFacts("torchrun", len(ranks), "a:29500", "gloo", 30, ranks)


OLD = {"torch": "2.4.1", "CUDA": "12.4", "Python": "3.11.9"}
NEW = {"torch": "2.6.0", "CUDA": "12.4", "Python": "3.11.4"}


class TestFromNetwork:
    def test_says_who_has_which(self):
        finding = MixedVersions().from_network(network(OLD, NEW, OLD))
        assert finding.evidence == {"torch": {"2.4.1": [0, 2], "2.6.0": [1]}}

    def test_takes_no_offence_at_the_last_number_of_python(self):
        assert MixedVersions().from_network(network(OLD, {**OLD, "Python": "3.11.4"})) is None

    def test_is_not_applicable_to_one_rank(self):
        with pytest.raises(NotApplicable):
            MixedVersions().from_network(network(OLD, {}))
