"""`diagnose`, as a person calls it."""

import importlib.metadata
import json
import subprocess
import sys
from itertools import pairwise

import pytest

from diagnostics.cli.main import main
from diagnostics.collectors.system import nvml
from diagnostics.facts.gpu import CardFacts, Holder
from diagnostics.rules.registry import all_rules

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/nli/train.py", line 31, in <module>
    trainer.train()
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3526, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
IndexError: Target 2 is out of bounds.
"""


class TestExplain:
    def test_names_the_rule_and_the_users_own_line_and_exits_with_1(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text(TRACEBACK)
        assert main(["explain", str(file)]) == 1
        printed = capsys.readouterr().out
        assert "error: labels-out-of-range" in printed
        assert "/home/ada/nli/train.py:31" in printed
        assert "surfaced at torch/nn/functional.py:3526 in cross_entropy" in printed

    def test_reads_standard_input(self):
        done = subprocess.run(
            [sys.executable, "-m", "diagnostics", "explain", "-", "--format", "json"],
            input=TRACEBACK,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        report = json.loads(done.stdout)
        assert [finding["rule"] for finding in report["findings"]] == ["labels-out-of-range"]
        assert report["findings"][0]["where"] == {
            "file": "/home/ada/nli/train.py",
            "line": 31,
            "function": "<module>",
        }

    def test_exits_with_0_when_no_rule_knows_the_failure(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text(TRACEBACK.replace("IndexError: Target 2 is out of bounds.", "KeyError: 'lr'"))
        assert main(["explain", str(file)]) == 0
        assert "No rule recognises this failure." in capsys.readouterr().out

    def test_writes_markdown_without_folders_unless_asked_for(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text(TRACEBACK)
        assert main(["explain", str(file), "--format", "markdown"]) == 1
        assert "/home/ada" not in capsys.readouterr().out
        main(["explain", str(file), "--format", "markdown", "--no-redact"])
        assert '"/home/ada/nli/train.py", line 31' in capsys.readouterr().out

    def test_writes_a_page(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text(TRACEBACK)
        assert main(["explain", str(file), "--format", "html"]) == 1
        page = capsys.readouterr().out
        assert page.startswith("<!DOCTYPE html>")
        assert "labels-out-of-range" in page

    def test_says_which_file_cannot_be_read(self, capsys):
        assert main(["explain", "no-such-log.txt"]) == 2
        assert capsys.readouterr().err == (
            "diagnose: no-such-log.txt cannot be read: No such file or directory.\n"
        )

    def test_says_that_a_file_holds_no_traceback(self, tmp_path, capsys):
        file = tmp_path / "log.txt"
        file.write_text("epoch 1\nepoch 2\n")
        assert main(["explain", str(file)]) == 2
        assert capsys.readouterr().err == (
            "diagnose: No rule knows this text. explain() was given 2 lines without a traceback. It takes a whole "
            "traceback, from 'Traceback (most recent call last):' to the line with the exception.\n"
        )


class TestRules:
    def test_lists_every_rule(self, capsys):
        assert main(["rules", "--format", "json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert {"labels-out-of-range", "ragged-batch", "untokenized-dataset"} <= {r["rule"] for r in listed}
        assert all(r["summary"].endswith(".") for r in listed)

    def test_cuts_nothing_off_in_a_narrow_terminal(self, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        main(["rules"])
        assert "…" not in capsys.readouterr().out

    @pytest.mark.parametrize("columns", [30, 40, 60, 80, 100, 120, 200])
    def test_has_at_most_two_lines_a_rule_grouped_by_stage(self, capsys, monkeypatch, columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        main(["rules"])
        lines = capsys.readouterr().out.splitlines()
        rules = {rule.name: rule for rule in all_rules()}
        starts = [line.partition(":")[0].split()[:2] for line in lines if line.startswith(("  e", "  w", "  n"))]
        assert [(severity, name) for severity, name in starts] == [(r.severity, r.name) for r in rules.values()]
        stages = [line for line in lines if line and not line.startswith(" ")]
        in_order = list(dict.fromkeys(rule.stage for rule in rules.values()))
        assert stages == [*in_order, *stages[len(in_order) :]]
        assert " ".join(stages[len(in_order) :]) == "diagnose rules NAME shows a rule's page."
        continued = [line.startswith("     ") for line in lines]
        assert (True, True) not in pairwise(continued)
        if columns >= 40:
            assert max(map(len, lines)) <= min(columns, 120)
        if columns >= 80:
            told = " ".join(" ".join(lines).split())
            assert all(" ".join(rule.summary().split()) in told for rule in rules.values())

    def test_shows_one_page(self, capsys):
        assert main(["rules", "labels-out-of-range"]) == 0
        assert "A label names a class that the model does not have." in capsys.readouterr().out

    def test_suggests_the_near_names(self, capsys):
        assert main(["rules", "label-out-of-range"]) == 2
        error = capsys.readouterr().err
        assert error.startswith(
            "diagnose: there is no rule 'label-out-of-range'. Did you mean labels-out-of-range"
        )

    def test_a_mistake_in_the_call_exits_with_2(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(["rule"])
        assert stopped.value.code == 2
        assert "invalid choice: 'rule'" in capsys.readouterr().err


GIB = 2**30
HUNGRY = Holder(4711, 22 * GIB, "ada", ("TensorFlow",), "python -m ipykernel_launcher")
SLIVER = Holder(4712, GIB, "bob", ("PyTorch",), "python train.py")


class TestGpu:
    """NVIDIA's answers are recorded ones."""

    @pytest.fixture
    def answers(self, monkeypatch):
        def give(*cards):
            monkeypatch.setattr(nvml, "cards", lambda library=None: cards)

        return give

    def test_says_in_one_line_that_there_is_no_card(self, monkeypatch, capsys):
        def refuse(library=None):
            raise nvml.NoCards("No NVIDIA driver is installed here, so there is no GPU to look at.", looked=True)

        monkeypatch.setattr(nvml, "cards", refuse)
        assert main(["gpu"]) == 0
        line = "No NVIDIA driver is installed here, so there is no GPU to look at."
        assert capsys.readouterr().out == line + "\n"
        assert main(["gpu", "--format", "json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["title"], report["cards"], report["findings"], report["ok"]) == (line, [], [], True)

    def test_on_this_machine_itself_ends_with_an_answer_or_a_way_to_one(self, capsys):
        code = main(["gpu"])
        printed = capsys.readouterr()
        assert code in (0, 1, 2)
        assert ("GPU 0" in printed.out or "no GPU to look at" in printed.out) is (code != 2)
        assert ("pip install nvidia-ml-py" in printed.err) is (code == 2)

    def test_says_what_to_install_where_a_card_cannot_be_asked(self, monkeypatch, capsys):
        def refuse(library=None):
            raise nvml.NoCards("Which process holds a GPU can be read only through nvidia-ml-py", looked=False)

        monkeypatch.setattr(nvml, "cards", refuse)
        assert main(["gpu"]) == 2
        assert (
            capsys.readouterr().err
            == "diagnose: Which process holds a GPU can be read only through nvidia-ml-py\n"
        )

    def test_lists_who_holds_what_and_warns_of_a_hungry_framework(self, answers, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "100")
        answers(CardFacts(0, "NVIDIA A10", 24 * GIB, GIB, (HUNGRY, SLIVER)))
        assert main(["gpu"]) == 1
        lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert lines[:4] == [
            "GPU 0  NVIDIA A10  1.0 GiB of 24.0 GiB free",
            "  process  user  memory    share  framework   command",
            "  4711     ada   22.0 GiB  92%    TensorFlow  python -m ipykernel_launcher",
            "  4712     bob   1.0 GiB   4%     PyTorch     python train.py",
        ]
        assert any(line.startswith("warning: tensorflow-holds-gpu") for line in lines)
        assert any(line.startswith("warning: crowded-gpu") for line in lines)
        assert lines[-1] == "2 warnings."

    def test_a_long_command_takes_no_room_from_the_figures(self, answers, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "60")
        holder = Holder(4711, 22 * GIB, "ada", ("TensorFlow",), "python -c import os\n\nprint(os.environ)")
        answers(CardFacts(0, "NVIDIA A10", 24 * GIB, GIB, (holder,)))
        main(["gpu"])
        lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert lines[1:3] == [
            "  process  user  memory    share  framework   command",
            "  4711     ada   22.0 GiB  92%    TensorFlow  python -c imp…",
        ]

    def test_is_content_with_a_card_in_use(self, answers, capsys):
        answers(CardFacts(0, "NVIDIA A10", 24 * GIB, 4 * GIB, (SLIVER,)), CardFacts(1, "NVIDIA A10", 24, 24))
        assert main(["gpu"]) == 0
        printed = capsys.readouterr().out
        assert "no processes" in printed
        assert printed.endswith("Nothing found.\n")

    def test_prints_json_for_programs(self, answers, capsys):
        foreign = Holder(4713, None, None, None, None)
        answers(CardFacts(0, "NVIDIA A10", 24 * GIB, 2 * GIB, (HUNGRY,)), CardFacts(1, "A", GIB, GIB, (foreign,)))
        assert main(["gpu", "--format", "json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert [(f["rule"], f["severity"]) for f in report["findings"]] == [("tensorflow-holds-gpu", "note")]
        assert report["not_applicable"] == ["tensorflow-holds-gpu"]
        assert report["cards"][0]["holders"][0] == {
            "pid": 4711,
            "size": 22 * GIB,
            "user": "ada",
            "frameworks": ["TensorFlow"],
            "command": "python -m ipykernel_launcher",
        }
        assert report["cards"][1]["holders"][0]["frameworks"] is None


class TestImports:
    @pytest.mark.parametrize("option", ["--version", "--help"])
    def test_a_question_about_the_program_imports_little(self, option):
        code = (
            "import sys; from diagnostics.cli.main import main\n"
            f"try: main([{option!r}])\nexcept SystemExit: pass\n"
            "heavy = ('numpy', 'rich', 'diagnostics.run', 'diagnostics.rules.batch', 'diagnostics.report.build')\n"
            "print('imported:', [name for name in heavy if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines()[-1] == "imported: []", done.stderr


class TestVersion:
    def test_is_that_of_the_installed_package(self, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["--version"])
        assert ended.value.code == 0
        installed = importlib.metadata.version("training-diagnostics")
        assert capsys.readouterr().out == f"diagnose (training-diagnostics {installed})\n"

    def test_is_not_known_of_a_clone_on_the_path(self, capsys, monkeypatch):
        def missing(name):
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(importlib.metadata, "version", missing)
        with pytest.raises(SystemExit):
            main(["--version"])
        assert capsys.readouterr().out == "diagnose (training-diagnostics, not installed)\n"


class TestCompletion:
    def test_says_what_to_install(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "shtab", None)
        assert main(["--print-completion", "bash"]) == 2
        assert capsys.readouterr().err == (
            "diagnose: --print-completion needs the package shtab: python -m pip install "
            "'training-diagnostics[completion]'\n"
        )

    def test_completes_the_options_of_every_command(self, capsys):
        pytest.importorskip("shtab")
        with pytest.raises(SystemExit) as ended:
            main(["--print-completion", "bash"])
        assert ended.value.code == 0
        printed = capsys.readouterr().out
        assert all(option in printed for option in ("--second-look", "--keep-logs", "--no-redact"))
