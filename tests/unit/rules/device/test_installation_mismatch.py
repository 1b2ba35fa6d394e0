import pytest

from diagnostics.rules.device.installation_mismatch import InstallationMismatch
from tests.support.messages import recognised, rows_by_kind

ROWS = rows_by_kind("installation-mismatch")


class TestFromMessage:
    @pytest.mark.parametrize("kind", ROWS)
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        finding = InstallationMismatch().from_message(*recognised(ROWS[kind].exception, ROWS[kind].examples[0]))
        assert (finding.severity, finding.evidence["kind"]) == ("error", kind)
