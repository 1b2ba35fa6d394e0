"""The first fault of a build that failed, which stands in the log and not in the exception."""

import pytest

from diagnostics.api.explain import explain

FAILED = """\
Building extension module cpu_adam...
[1/1] c++ cpu_adam.o cpu_adam_impl.o -shared -lcurand -L/opt/venv/torch/lib -o cpu_adam.so
FAILED: cpu_adam.so
{fault}
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  File "/opt/venv/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 2107, in _run_ninja_build
    subprocess.run(
{error}
"""
NINJA = "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1."
EXTENSION = "RuntimeError: Error building extension 'cpu_adam'"
HALF_BUILT = "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'"


@pytest.mark.parametrize("error", [NINJA, EXTENSION, HALF_BUILT])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("/usr/bin/ld: cannot find -lcurand", "no libcurand.so"),
        ("gemm_test.h:6:10: fatal error: cuda_profiler_api.h: No such file", "no cuda_profiler_api.h"),
        ("#error -- unsupported GNU version! gcc versions later than 11 are not supported!", "only up to 11"),
    ],
)
def test_the_log_tells_what_the_build_lacks(fault, said, error):
    (finding,) = explain(FAILED.format(fault=fault, error=error)).findings
    assert finding.rule == "installation-mismatch"
    assert said in finding.message


def test_a_build_without_a_known_fault_is_told_as_before():
    (finding,) = explain(FAILED.format(fault="error: something else", error=EXTENSION)).findings
    assert "the compiler or the CUDA toolkit is missing" in finding.message


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ZeroDivisionError: division by zero", None),
        ("ValueError: num_samples should be a positive integer value, but got num_samples=0", "emptied-dataset"),
    ],
)
def test_a_warning_of_a_build_is_not_the_cause_of_another_failure(error, said):
    report = explain(FAILED.format(fault="/usr/bin/ld: cannot find -lcurand", error=error))
    assert [finding.rule for finding in report.findings] == ([said] if said else [])


def test_a_missing_header_of_a_project_is_no_missing_file_of_the_training():
    (finding,) = explain("fatal error: Python.h: No such file or directory").findings
    assert finding.rule == "installation-mismatch"
    assert "python3.11-dev" in finding.fix
