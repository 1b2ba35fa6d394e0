import pytest

from diagnostics.config import from_option, from_pyproject
from diagnostics.errors import InvalidInput
from diagnostics.report.policy import Policy

EXAMPLE = '[tool.diagnostics.ignore]\nsorted-by-label = "a stream in the order of time, on purpose"'


class TestFromOption:
    @pytest.mark.parametrize("names", ["", " , "])
    def test_nothing(self, names):
        assert from_option(names) == {}

    def test_several(self):
        assert from_option("loss-plateau, dead-units,") == {"loss-plateau": "", "dead-units": ""}

    def test_an_unknown_rule_is_named_with_the_nearest(self):
        with pytest.raises(InvalidInput) as raised:
            from_option("loss-plato")
        assert str(raised.value) == (
            "--ignore names 'loss-plato', but there is no such rule. Did you mean loss-plateau or "
            "loss-oscillation?"
        )


class TestFromPyproject:
    @pytest.fixture
    def project(self, tmp_path):
        def write(text):
            (tmp_path / "pyproject.toml").write_text(text)
            return tmp_path

        return write

    def refused(self, folder):
        with pytest.raises(InvalidInput) as raised:
            from_pyproject(folder)
        return str(raised.value).replace(str(folder), "DIR")

    def test_is_found_in_a_folder_above(self, project):
        folder = project('[tool.diagnostics.ignore]\ndead-units = "a sparse model"\n') / "src" / "deep"
        folder.mkdir(parents=True)
        assert from_pyproject(folder).ignores == {"dead-units": "a sparse model"}

    def test_the_nearest_one_counts(self, project):
        folder = project('[tool.diagnostics.ignore]\ndead-units = "a sparse model"\n') / "src"
        folder.mkdir()
        (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
        assert from_pyproject(folder).ignores == {}

    def test_an_inline_table_is_the_same(self, project):
        folder = project('[tool.diagnostics]\nignore = {dead-units = "x"}\n')
        assert from_pyproject(folder).ignores == {"dead-units": "x"}

    @pytest.mark.parametrize("text", ["", "[tool.ruff]\nline-length = 100\n", "[tool.diagnostics]\n"])
    def test_nothing_to_ignore(self, project, text):
        assert from_pyproject(project(text)) == Policy(folder=project(text))

    def test_a_reason_is_asked_for(self, project):
        assert self.refused(project('[tool.diagnostics.ignore]\ndead-units = " "\n')) == (
            "[tool.diagnostics.ignore] in DIR/pyproject.toml gives no reason for dead-units. Write why it is "
            'ignored:\n[tool.diagnostics.ignore]\nsorted-by-label = "the stream is chronological on purpose"'
        )

    def test_a_list_has_no_reasons(self, project):
        assert self.refused(project('[tool.diagnostics]\nignore = ["dead-units"]\n')) == (
            "[tool.diagnostics.ignore] in DIR/pyproject.toml is a list. It takes rule names, each with a "
            'reason:\n[tool.diagnostics.ignore]\nsorted-by-label = "the stream is chronological on purpose"'
        )

    def test_an_unknown_rule(self, project):
        assert self.refused(project('[tool.diagnostics.ignore]\nnonsense = "x"\n')) == (
            "[tool.diagnostics.ignore] in DIR/pyproject.toml names 'nonsense', but there is no such "
            "rule. `diagnose rules` lists all rules."
        )

    def test_an_unknown_key(self, project):
        assert self.refused(project("[tool.diagnostics]\nskip = []\n")) == (
            "[tool.diagnostics] in DIR/pyproject.toml holds skip. It takes fail-on, ignore, severity, "
            "overrides and show-batch:\n[tool.diagnostics.ignore]\n"
            'sorted-by-label = "the stream is chronological on purpose"'
        )

    def test_severities_fail_on_and_overrides(self, project):
        policy = from_pyproject(
            project(
                '[tool.diagnostics]\nfail-on = "error"\nseverity = {dead-units = "note"}\n'
                '[[tool.diagnostics.overrides]]\npath = ["tests/*"]\nfail-on = "never"\n'
                'severity = {dead-units = "off"}\n'
            )
        )
        assert (policy.fail_on, policy.levels) == ("error", {"dead-units": "note"})
        in_tests = policy.of_file(str(policy.folder / "tests" / "unit" / "train.py"))
        assert (in_tests.fail_on, in_tests.levels) == ("never", {"dead-units": "off"})
        assert policy.of_file(str(policy.folder / "train.py")).levels == {"dead-units": "note"}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                'fail-on = "note"',
                "fail-on of [tool.diagnostics] in DIR/pyproject.toml is 'note'. It takes one of:",
            ),
            (
                'severity = {dead-units = "fatal"}',
                "gives dead-units 'fatal'. A severity is one of: error, warning, ",
            ),
            (
                'severity = {nonsense = "note"}',
                "[tool.diagnostics.severity] in DIR/pyproject.toml names 'nonsense'",
            ),
            (
                'show-batch = "no"',
                "show-batch of [tool.diagnostics] in DIR/pyproject.toml is 'no'. It takes true or",
            ),
            ("severity = 3", "is an int. It takes rule names, each with a severity:"),
            ("overrides = 3", "overrides of [tool.diagnostics] in DIR/pyproject.toml is an int."),
            (
                'overrides = [{fail-on = "never"}]',
                "[[tool.diagnostics.overrides]] in DIR/pyproject.toml has no path.",
            ),
        ],
    )
    def test_a_setting_that_is_wrong(self, project, text, said):
        assert said in self.refused(project(f"[tool.diagnostics]\n{text}\n"))

    def test_a_broken_file(self, project):
        assert self.refused(project("[tool\n")).startswith("DIR/pyproject.toml cannot be read: Expected ']'")
