"""`pytest --diagnose` and the fixture `diagnose`, over tests that really train."""

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

import diagnostics
from diagnostics.run.observer import ScriptObserver

pytest_plugins = ["pytester"]

LOOP = """\
import pytest
import torch
from torch import nn


def train(training=True, steps=30, weigh=None):
    torch.manual_seed(0)
    inputs = torch.randn(96, 4)
    labels = inputs[:, :3].argmax(dim=1)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 3)).train(training)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        rows = torch.randperm(96)[:32]
        loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        loss = loss if weigh is None else weigh(loss)
        loss.backward()
        optimizer.step()
    return loss.item()


def train_to_nan():
    return train(weigh=lambda loss: (loss - loss).sqrt() / 0)
"""
NAN = LOOP + "\n\ndef test_training():\n    train_to_nan()\n"
EVAL_MODE = LOOP + "\n\ndef test_training():\n    assert train(training=False) < 1\n"


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import what a diagnosis does: pytester forgets what it is the first to import; there would be two of it."""
    run = ScriptObserver()
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    run.close()
    assert len(run.watched()) == 1
    diagnostics.explain(ValueError("no labels"))
    assert run.faults == []


@pytest.fixture
def diagnosed(pytester):
    """Run pytest, in this process, over the text of a test module."""

    def over(text, *arguments, **options):
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess(*arguments, **options)

    return over


def hooks():
    """What a `ScriptObserver` replaces: as they are, these have been left alone."""
    return (
        nn.Module.__call__,
        torch.optim.Optimizer.__init__,
        torch.autograd.backward,
        torch.amp.GradScaler.scale,
        list(sys.meta_path),
        dict(_global_optimizer_pre_hooks),
        dict(_global_optimizer_post_hooks),
    )


class TestDiagnose:
    def test_fails_a_test_that_passes_and_says_what_is_wrong_with_its_training(self, diagnosed):
        done = diagnosed(NAN, "--diagnose")
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(
            [
                "the test passed, but its training has findings: non-finite-loss (error)*",
                "-* diagnose -*",
                "diagnosed test_training",
                "error: non-finite-loss *step 0 *:15 in train",
            ]
        )

    def test_is_silent_about_a_training_that_is_right(self, diagnosed):
        done = diagnosed(LOOP + "\n\ndef test_training():\n    assert train() < 1.4\n", "--diagnose", "-rP")
        done.assert_outcomes(passed=1)
        done.stdout.no_fnmatch_line("*diagnose*")

    def test_is_silent_about_tests_that_train_nothing(self, diagnosed):
        done = diagnosed(
            """
            import pytest, unittest
            def test_passes(): print("printed")
            def test_fails(): assert {} == {1: 2}
            @pytest.mark.skip
            def test_is_left_out(): ...
            @pytest.mark.xfail(strict=True)
            def test_is_known_to_fail(): raise ValueError("as ever")
            class TestOld(unittest.TestCase):
                def test_passes(self): ...
            """,
            "--diagnose",
            "-rA",
        )
        done.assert_outcomes(passed=2, failed=1, skipped=1, xfailed=1)
        done.stdout.no_fnmatch_line("*diagnose*")

    def test_says_what_the_exception_comes_from_that_ends_a_test(self, diagnosed):
        text = """
            import torch
            def test_training():
                logits = torch.zeros(4, 2, requires_grad=True)
                torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0]))
        """
        done = diagnosed(text, "--diagnose")
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(["E *IndexError: Target 2 is out of bounds.", "*labels-out-of-range*"])

    def test_says_what_is_wrong_with_a_training_in_a_fixture(self, diagnosed):
        text = LOOP + "\n\n@pytest.fixture\ndef trained():\n    return train_to_nan()\n\n"
        done = diagnosed(text + "\ndef test_trained(trained):\n    assert trained != trained\n", "--diagnose")
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(["error: non-finite-loss *"])
        done = diagnosed(
            text.replace("return train_to_nan()", "assert train_to_nan() < 1")
            + "\ndef test_trained(trained): ...\n",
            "--diagnose",
        )
        done.assert_outcomes(errors=1)
        done.stdout.fnmatch_lines(["E *assert nan < 1*", "error: non-finite-loss *"])

    def test_looks_at_each_test_alone(self, diagnosed):
        text = (
            NAN + "\n\ndef test_second():\n    assert train() < 1.4\n\n\ndef test_third():\n    train_to_nan()\n"
        )
        done = diagnosed(text, "--diagnose", "-v")
        done.assert_outcomes(passed=1, failed=2)
        done.stdout.fnmatch_lines(["*::test_training FAILED*", "*::test_second PASSED*", "*::test_third FAILED*"])

    def test_takes_everything_off_after_each_test_however_it_ends(self, diagnosed):
        before = hooks()
        stop = "\n\ndef test_zz():\n    train(steps=2)\n    raise KeyboardInterrupt\n"
        done = diagnosed(NAN + stop, "--diagnose", no_reraise_ctrlc=True)
        assert done.ret == pytest.ExitCode.INTERRUPTED
        assert hooks() == before

    def test_changes_no_result(self, diagnosed):
        text = LOOP + "\n\ndef test_training():\n    print('loss', train().hex(), torch.rand(1).item().hex())\n"
        alone, seen = (diagnosed(text, "-rP", *options) for options in ((), ("--diagnose",)))
        losses = [[line for line in done.outlines if line.startswith("loss ")] for done in (alone, seen)]
        assert losses[0] == losses[1] != []

    def test_leaves_an_expected_failure_one(self, diagnosed):
        text = NAN.replace("def test_training", "@pytest.mark.xfail(strict=True)\ndef test_training")
        diagnosed(text, "--diagnose").assert_outcomes(xfailed=1)

    def test_holds_no_model_after_its_test(self, diagnosed):
        text = """
            import gc, weakref
            models = []
            def test_training():
                model = nn.Linear(4, 3)
                models.append(weakref.ref(model))
                torch.optim.SGD(model.parameters(), lr=0.1)
                model(torch.ones(2, 4)).sum().backward()
            def test_then():
                gc.collect()
                assert models[0]() is None
        """
        diagnosed(LOOP + textwrap.dedent(text), "--diagnose").assert_outcomes(passed=2)

    def test_works_in_the_processes_of_xdist(self, pytester):
        pytester.makepyfile(NAN + "\n\ndef test_second():\n    assert train() < 1.4\n")
        done = pytester.runpytest_subprocess("--diagnose", "-n", "1")
        done.assert_outcomes(passed=1, failed=1)
        done.stdout.fnmatch_lines(["the test passed, but *: non-finite-loss (error)", "error: non-finite-loss *"])


class TestFailOn:
    def test_warning_fails_a_test_for_a_warning(self, diagnosed):
        done = diagnosed(EVAL_MODE, "--diagnose", "--diagnose-fail-on=warning")
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(
            ["the test passed, but its training has findings: eval-mode-training (warning)*"]
        )

    def test_error_only_names_a_warning_at_the_end(self, diagnosed):
        done = diagnosed(EVAL_MODE, "--diagnose")
        done.assert_outcomes(passed=1)
        done.stdout.fnmatch_lines(
            [
                "-* diagnose: passed with findings (-rP shows them) -*",
                "*::test_training: eval-mode-training (warning)",
            ]
        )

    def test_never_names_an_error_at_the_end(self, diagnosed):
        done = diagnosed(NAN, "--diagnose", "--diagnose-fail-on=never", "-rP")
        done.assert_outcomes(passed=1)
        done.stdout.fnmatch_lines(["error: non-finite-loss *", "*::test_training: non-finite-loss (error)"])

    def test_takes_no_other_word(self, diagnosed):
        done = diagnosed(NAN, "--diagnose", "--diagnose-fail-on=note")
        assert done.ret == pytest.ExitCode.USAGE_ERROR


class TestIgnore:
    def test_by_a_mark_with_the_reason(self, diagnosed):
        mark = '@pytest.mark.diagnose(ignore=["non-finite-loss"], reason="it is about the NaN")\n'
        done = diagnosed(NAN.replace("def test_training", f"{mark}def test_training"), "--diagnose", "-rP")
        done.assert_outcomes(passed=1)
        done.stdout.fnmatch_lines(["Ignored: non-finite-loss (it is about the NaN)*"])
        done.stdout.no_fnmatch_line("*error: non-finite-loss*")

    def test_by_a_mark_that_is_no_longer_needed(self, diagnosed):
        mark = '@pytest.mark.diagnose(ignore=["no-gradient"], reason="a frozen model")\n'
        text = LOOP + f"\n\n{mark}def test_training():\n    assert train() < 1.4\n"
        done = diagnosed(text, "--diagnose", "-rP")
        done.assert_outcomes(passed=1)
        done.stdout.fnmatch_lines(["Unused ignore: no-gradient."])

    def test_in_all_tests_by_the_table_that_diagnose_run_reads_too(self, diagnosed, pytester):
        pytester.makepyprojecttoml(
            '[tool.diagnostics.ignore]\nnon-finite-loss = "an empty batch"\nno-gradient = "x"\n'
        )
        done = diagnosed(NAN, "--diagnose", "-rP")
        done.assert_outcomes(passed=1)
        done.stdout.fnmatch_lines(["Ignored: non-finite-loss (an empty batch)*"])
        done.stdout.no_fnmatch_line("*no-gradient*")

    def test_a_table_that_makes_no_sense_ends_the_session(self, diagnosed, pytester):
        file = pytester.makepyprojecttoml("[tool.diagnostics.ignore]\nnon-finite-loss = ''\n")
        done = diagnosed(NAN, "--diagnose")
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        said = f"ERROR: [tool.diagnostics.ignore] in {file} gives no reason for non-finite-loss. Write why"
        assert said in done.stderr.str()

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ("ignore=['non-finite-loss']", ' gives no reason. Write ignore=["RULE"], reason="…".'),
            (
                "ignore='non-finite-loss', reason='why'",
                ' takes ignore, a list of rules, and reason, both by name. Write ignore=["RULE"], reason="…".',
            ),
            (
                "'non-finite-loss'",
                ' takes ignore, a list of rules, and reason, both by name. Write ignore=["RULE"], reason="…".',
            ),
            (
                "ignore=['E501'], reason='why'",
                " names 'E501', but there is no such rule. `diagnose rules` lists all rules.",
            ),
        ],
    )
    def test_a_mark_that_makes_no_sense_fails_its_test(self, diagnosed, given, said):
        text = NAN.replace("def test_training", f"@pytest.mark.diagnose({given})\ndef test_training")
        done = diagnosed(text, "--diagnose", "-rN")
        done.assert_outcomes(errors=1)
        assert f"@pytest.mark.diagnose({given}){said}" in done.outlines
        done.stdout.no_fnmatch_line("*another exception*")


class TestFixture:
    def test_shows_one_test_what_was_found(self, diagnosed):
        text = """
            def test_training(diagnose):
                train()
                diagnose.raise_if("note")
                assert [report.title.split()[0] for report in diagnose.reports] == ["examined", "watched"]
                train_to_nan()
                assert [finding.rule for finding in diagnose.report().findings] == ["non-finite-loss"]
                diagnose.raise_if("error")

            def test_another():
                train_to_nan()
        """
        done = diagnosed(LOOP + textwrap.dedent(text))
        done.assert_outcomes(passed=1, failed=1)
        done.stdout.fnmatch_lines(["E *FindingsPresent: diagnosed test_training: non-finite-loss"])

    def test_adds_what_was_found_where_its_test_fails(self, diagnosed):
        text = LOOP + "\n\ndef test_training(diagnose):\n    assert train_to_nan() < 1\n"
        done = diagnosed(text)
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(["-* diagnose -*", "error: non-finite-loss *"])

    def test_is_the_same_within_another_fixture_and_with_the_option(self, diagnosed):
        text = """
            @pytest.fixture
            def trained(diagnose):
                return train(training=False), diagnose

            def test_training(trained, diagnose):
                loss, seen = trained
                assert seen is diagnose
                assert [finding.rule for finding in diagnose.report().findings] == ["eval-mode-training"]
        """
        for options in ((), ("--diagnose",)):
            before = hooks()
            diagnosed(LOOP + textwrap.dedent(text), *options).assert_outcomes(passed=1)
            assert hooks() == before

    def test_leaves_out_what_the_mark_says(self, diagnosed):
        text = """
            @pytest.mark.diagnose(ignore=["non-finite-loss"], reason="it is about the NaN")
            def test_training(diagnose):
                train_to_nan()
                diagnose.raise_if("error")
        """
        diagnosed(LOOP + textwrap.dedent(text)).assert_outcomes(passed=1)


def test_without_the_option_nothing_is_imported_but_diagnostics_itself(tmp_path):
    (tmp_path / "test_modules.py").write_text(
        "import sys\n\n\ndef test_modules():\n    print(sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'diagnostics', 'numpy', 'rich', 'torch', 'transformers', 'tensorflow', 'keras'}))\n"
        "    assert 'diagnostics.pytest_plugin' in sys.modules and 'diagnostics.run.observer' not in sys.modules\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", "-p", "no:timeout", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "['diagnostics']" in done.stdout.splitlines(), done.stdout + done.stderr


def test_with_the_option_no_framework_is_imported(tmp_path):
    (tmp_path / "test_modules.py").write_text(
        "import sys\n\n\ndef test_modules():\n    print({'torch', 'transformers', 'tensorflow', 'keras'} & "
        "set(sys.modules))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", "--diagnose", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "set()" in done.stdout.splitlines(), done.stdout + done.stderr


CHECKS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(8, 4), torch.arange(8) % 2)


def test_the_loader(loader_checks):
    loader_checks.same_item_twice(data)
    loader_checks.batch_equals_items(DataLoader(data, 4))


def test_gradients(gradient_checks):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    gradient_checks.every_parameter(model, data[:], nn.functional.cross_entropy)
"""


class TestCheckFixtures:
    def test_are_silent_where_all_is_well(self, diagnosed):
        done = diagnosed(CHECKS)
        done.assert_outcomes(passed=2)
        done.stdout.no_fnmatch_line("*same item twice*")

    def test_show_what_they_saw_if_asked(self, diagnosed):
        done = diagnosed(CHECKS, "-rP")
        done.stdout.fnmatch_lines(["same item twice: 8 items, twice the same.", "batch equals items: 4 rows are*"])
        done.stdout.fnmatch_lines(["every parameter: 4 parameters with norms from *"])

    def test_fail_with_the_reason(self, diagnosed):
        text = CHECKS.replace("nn.functional.cross_entropy", "lambda p, y: (p.detach() - y[:, None]).mean()")
        done = diagnosed(text.replace("DataLoader(data, 4)", "lambda rows: [rows[0]] * 4, list(data)[:4]"))
        done.assert_outcomes(failed=2)
        done.stdout.fnmatch_lines(
            [
                "E *CheckFailed: every parameter: 4 of 4 trainable parameters would never change*",
                "E *What to change: *",
                "E *Read: diagnose rules no-gradient",
            ]
        )

    def test_stand_beside_the_observation_of_every_test(self, diagnosed):
        diagnosed(CHECKS, "--diagnose").assert_outcomes(passed=2)


def test_a_failing_check_ends_at_the_line_of_the_test(pytester):
    pytester.makepyfile(
        """
        import numpy as np
        import diagnostics


        def test_sums():
            diagnostics.compare(lambda x: x.sum(0), lambda x: x.sum(0) + 1, np.ones((3, 2))).assert_same()


        def test_report(diagnose):
            diagnose.raise_if("fatal")


        def test_round_trip(loader_checks):
            loader_checks.round_trip(["a", "b"], lambda item: item, lambda item: item + "x")
        """
    )
    text = pytester.runpytest("--tb=long").stdout.str()
    assert "test_a_failing_check_ends_at_the_line_of_the_test.py:6: CheckFailed" in text
    assert "test_a_failing_check_ends_at_the_line_of_the_test.py:10: InvalidInput" in text
    assert "test_a_failing_check_ends_at_the_line_of_the_test.py:14: CheckFailed" in text
    assert "/diagnostics/" not in text.partition("= FAILURES =")[2].partition("= short test summary")[0]
