"""The recipes of `book/guide/several-hosts.md`: each is run by bash, with stand-ins for what starts processes."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from torch.distributed.run import get_args_parser

from diagnostics.cli.main import _parser
from diagnostics.cli.run import split
from diagnostics.collectors.network.launcher import placement
from diagnostics.run.ranks.exchange import rank_of_this_process

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "book" / "guide" / "several-hosts.md").read_text()
JOB = {
    "SLURM_JOB_ID": "71234", "SLURM_JOB_NODELIST": "gpu[003-004]", "SLURM_JOB_NUM_NODES": "2",
    "SLURM_STEP_NUM_TASKS": "16", "SLURM_NTASKS": "16", "SLURM_PROCID": "11", "SLURM_LOCALID": "3",
}  # fmt: skip
FROM_LAUNCHERS = {"JOB_COMPLETION_INDEX", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS"}  # for torchrun, and RANK
# Each of them prints the command as it got it; srun and bash -c run what they are given.
STAND_INS = """
say() { printf '%q ' "$@"; echo; }
torchrun() { say torchrun "$@"; }
diagnose() { say diagnose "$@"; }
env() { export RANK WORLD_SIZE LOCAL_WORLD_SIZE; say env "$@"; }
srun() { while [[ $1 == --* ]]; do shift 2; done; "$@"; }
scontrol() { printf 'gpu003\\ngpu004\\n'; }
scp() { :; }
exec() { "$@"; }
export -f say torchrun diagnose srun scontrol env exec
"""


def blocks(section, language):
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(script, folder, **environment):
    """Run a recipe, and return the commands that it starts, each as words."""
    done = subprocess.run(
        ["bash", "-uc", STAND_INS + script], cwd=folder, env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [shlex.split(line) for line in done.stdout.splitlines()]


def launched(words):
    """Return torchrun's options, read by its own parser, and ours, read by ours."""
    assert words[0] == "torchrun"
    options = get_args_parser().parse_args(words[1:])
    assert (options.module, options.training_script) == (True, "diagnostics")
    return options, ours(["diagnose", *options.training_script_args])


def ours(words):
    assert words[0] == "diagnose"
    return _parser(words[1]).parse_args(split(words[1:])[0])


def manifests():
    (text,) = blocks("Kubernetes", "yaml")
    service, job = yaml.safe_load_all(text)
    return service, job


def test_slurm(tmp_path):
    network, run, join = commands(blocks("SLURM", "bash")[0], tmp_path, **JOB)
    (options, tried), (again, observed) = launched(network), launched(run)
    place = placement(JOB)  # where `srun diagnose network` would meet
    for each in (options, again):
        assert each.rdzv_endpoint == f"{place.host}:{place.port}" == "gpu003:41234"
        assert (each.rdzv_id, each.nnodes, each.nproc_per_node) == ("71234", "2", "8")
    assert (observed.script, str(observed.output)) == ("train.py", "reports/report.json")
    assert (tmp_path / observed.output.parent).is_dir()
    assert str(tried.logs).startswith("reports/")
    assert join == ["diagnose", "join", "reports"]


def test_slurm_without_torchrun(tmp_path):
    ((env, *words),) = commands(blocks("SLURM", "bash")[1], tmp_path, **JOB)
    assert env == "env"
    given = dict(word.split("=") for word in words if "=" in word)
    rank = rank_of_this_process(given)
    assert (rank.number, rank.world, rank.local_world, given["LOCAL_RANK"]) == (11, 16, 8, "3")
    assert ours(words[len(given) :]).script == "train.py"


@pytest.mark.parametrize("index", ["0", "1"])
def test_kubernetes(tmp_path, index):
    service, job = manifests()
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["bash", "-c"]
    network, run = commands(container["args"][0], tmp_path, JOB_COMPLETION_INDEX=index)
    (options, tried), (again, observed) = launched(network), launched(run)
    for each in (options, again):
        assert (each.node_rank, each.nnodes) == (int(index), str(job["spec"]["completions"]))
        assert int(each.nproc_per_node) == container["resources"]["limits"]["nvidia.com/gpu"]
        name = f"{job['metadata']['name']}-0"  # of the first pod of an indexed Job
        assert each.master_addr == f"{name}.{service['metadata']['name']}"
    assert tried.limit == 120
    assert str(observed.output.parent) in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_kubernetes_finds_its_pods():
    service, job = manifests()
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    pod = job["spec"]["template"]["spec"]
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert job["spec"]["completions"] == job["spec"]["parallelism"]


def test_two_plain_hosts(tmp_path):
    first, after = blocks("Two plain hosts", "bash")
    network, run = commands(first, tmp_path)
    for words in (network, run):
        options, _ = launched(words)
        assert (options.node_rank, options.nnodes, options.master_addr) == (0, "2", "node-a")
    assert commands(after, tmp_path) == [["diagnose", "join", "reports"]]


def test_variables_are_those_that_are_read():
    source = "\n".join(file.read_text() for file in (ROOT / "diagnostics").rglob("*.py"))
    source += (ROOT / "diagnostics/collectors/crash/messages/unreachable-rank.toml").read_text()
    named = set(re.findall(r"\b(?:[A-Z]+_)+[A-Z]+\b", PAGE)) - FROM_LAUNCHERS
    assert {"MASTER_ADDR", "SLURM_PROCID", "LOCAL_WORLD_SIZE", "NCCL_SOCKET_IFNAME"} <= named
    assert [name for name in named if name not in source] == []
