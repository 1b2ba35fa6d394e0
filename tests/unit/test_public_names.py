"""What `import diagnostics` offers, and what it costs."""

import subprocess
import sys

import diagnostics


def test_the_exported_names_are_these_and_no_others():
    assert diagnostics.__all__ == [
        "CheckFailed",
        "DiagnosticsError",
        "Finding",
        "FindingsPresent",
        "FixedBatch",
        "InvalidInput",
        "Report",
        "TrainingStopped",
        "Watch",
        "baselines",
        "check_notebook",
        "examine",
        "explain",
        "largest_batch",
        "overfit",
        "probe",
        "watch",
    ]
    assert all(hasattr(diagnostics, name) for name in diagnostics.__all__)


def test_the_callbacks_are_made_where_they_are_asked_for_and_so_are_not_among_them():
    code = (
        "import sys, diagnostics\n"
        "from diagnostics import *\n"
        "print([name for name in ('torch', 'transformers', 'tensorflow', 'keras') if name in sys.modules])\n"
        "print([name for name in vars(diagnostics) if name.endswith('Callback')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n[]\n", "")


def test_what_tests_call_is_imported_where_it_is_asked_for():
    code = (
        "import sys, diagnostics\n"
        "print('diagnostics.api.checks' in sys.modules)\n"
        "diagnostics.compare, diagnostics.LoaderChecks, diagnostics.GradientChecks\n"
        "print([name for name in ('torch', 'transformers', 'tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n[]\n", "")


def test_every_exception_descends_from_one():
    assert issubclass(diagnostics.InvalidInput, diagnostics.DiagnosticsError)
    assert issubclass(diagnostics.InvalidInput, ValueError)
    assert issubclass(diagnostics.FindingsPresent, diagnostics.DiagnosticsError)
    assert issubclass(diagnostics.CheckFailed, diagnostics.DiagnosticsError)
    assert issubclass(diagnostics.CheckFailed, AssertionError)


def test_importing_it_imports_no_framework_and_nothing_heavy():
    code = (
        "import sys; before = set(sys.modules); import diagnostics\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['diagnostics']\n", "")


def test_a_report_can_be_made_printed_and_saved_without_numpy_or_a_framework():
    code = (
        "import sys, diagnostics\n"
        "report = diagnostics.Report('examined', (diagnostics.Finding('x', 'note', 'data', 'message', 'fix'),))\n"
        "str(report), report.to_json()\n"
        "print([name for name in ('numpy', 'torch', 'tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_explaining_a_text_imports_no_framework():
    code = (
        "import sys, diagnostics\n"
        "diagnostics.explain('IndexError: Target 2 is out of bounds.')\n"
        "print([name for name in ('torch', 'transformers', 'tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
