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
        assert finding.message == (
            "The ranks run different versions: torch is 2.4.1 on ranks 0 and 2 and 2.6.0 on rank 1. They take "
            "part in the same collectives, and each expects the protocol of its own version."
        )
        assert finding.evidence == {"torch": {"2.4.1": [0, 2], "2.6.0": [1]}}
        assert finding.fix.startswith("install one version of torch on every host")

    def test_takes_no_offence_at_the_last_number_of_python(self):
        assert MixedVersions().from_network(network(OLD, {**OLD, "Python": "3.11.4"})) is None

    def test_is_not_applicable_to_one_rank(self):
        with pytest.raises(NotApplicable, match="versions of two ranks"):
            MixedVersions().from_network(network(OLD, {}))
