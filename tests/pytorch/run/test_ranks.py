"""`diagnose run` under a launcher of several processes: one report, and the script's own exit codes."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch

from diagnostics import Finding, Report
from diagnostics.run.ranks.exchange import Exchange, Rank, rank_of_this_process

# Each rank trains by itself; what one rank does differently replaces a line.
TRAIN = """
    import os, torch
    import torch.distributed as dist
    from torch import nn
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    inputs = torch.randn(512, 8)
    labels = inputs[:, :3].argmax(1)
    # HERE
    for epoch in range(8):
        for rows in torch.randperm(512).split(32):
            if ZERO:
                optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
    dist.barrier()
    dist.destroy_process_group()
    """


def torchrun(folder, text, *given, options=(), arguments=(), launcher=("--standalone",), observed=True):
    (folder / "train.py").write_text(textwrap.dedent(text))
    temporary = folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", *launcher, "--nproc-per-node", "2"]
    return subprocess.run(
        [*command, *(["-m", "diagnostics", "run", *given, *options] if observed else []), "train.py", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
class TestTorchrun:
    def test_what_both_ranks_show_is_told_once_and_fails_neither(self, tmp_path):
        text = TRAIN.replace("LR", "3e-2").replace("ZERO", "False")
        ended = torchrun(tmp_path, text, "--output", "r.json")
        assert ended.returncode == 0, ended.stderr
        assert "diagnose: rank 1" not in ended.stderr
        reports = [json.loads((tmp_path / name).read_text()) for name in ("r.json", "r.rank1.json")]
        assert ["rank 0 of 2" in reports[0]["title"], "rank 1 of 2" in reports[1]["title"]] == [True, True]
        for report in reports:
            assert [finding["rule"] for finding in report["findings"]] == ["gradients-not-zeroed"]
        assert list((tmp_path / "temporary").glob("diagnose-*")) == []

    @pytest.mark.exhaustive
    def test_what_only_the_other_rank_shows_is_told_in_a_line(self, tmp_path):
        text = TRAIN.replace("LR", "1e-2 if rank == 0 else 3e-2").replace("ZERO", "rank == 0")
        text = text.replace("nn.parallel.DistributedDataParallel(", "(")
        ended = torchrun(tmp_path, text)
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr.count("\nran train.py, rank 0 of 2, ") == 1
        assert "ran train.py, rank 1 of 2" not in ended.stderr
        (line,) = [line for line in ended.stderr.splitlines() if line.startswith("diagnose: ")]
        assert line.startswith("diagnose: rank 1: error: gradients-not-zeroed: ")

    @pytest.mark.exhaustive  # three processes; `TestExitCode` and `TestExchange` stand for it
    def test_a_rank_that_crashes_tells_why_and_ends_with_its_own_exit_code(self, tmp_path):
        text = TRAIN.replace("LR", "1e-2").replace("ZERO", "True")
        text = text.replace("# HERE", "labels = labels + 7 * rank")
        ended = torchrun(tmp_path, text)
        assert ended.returncode == 1
        assert "is out of bounds." in ended.stderr
        assert ended.stderr.count("ran train.py, rank 1 of 2, ") == 1
        assert "error: labels-out-of-range" in ended.stderr
        assert "exitcode  : 1 " in ended.stderr  # torchrun's own table, of rank 1

    @pytest.mark.exhaustive  # three processes; the test of `running_ranks` stands for it
    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which ranks still run")
    def test_of_a_rank_that_is_killed_nothing_is_left(self, tmp_path):
        text = TRAIN.replace("LR", "1e-2").replace("ZERO", "True")
        text = text.replace("optimizer.step()", "optimizer.step()\n            if rank: os.kill(os.getpid(), 9)")
        ended = torchrun(tmp_path, text)
        assert ended.returncode == 1
        assert ended.stderr.count("\nran train.py, rank 0 of 2, ") == 1
        assert "exitcode  : -9 " in ended.stderr
        assert list((tmp_path / "temporary").glob("diagnose-*")) == []


@pytest.mark.slow
@pytest.mark.exhaustive  # six processes, twice
class TestRestarts:
    """`torchrun --max-restarts 1` of a job whose rank 1 fails, and goes on from its checkpoint."""

    def ended(self, folder, fails_in, **how):
        folder.mkdir()
        text = TRAIN.replace("LR", "1e-2").replace("ZERO", "True")
        begin = f"""
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    if os.path.exists("checkpoint.pt"):
        model.load_state_dict(torch.load("checkpoint.pt"))
    os.write(1, f"attempt {{attempt}}, rank {{rank}}\\n".encode())  # in one piece
    dist.barrier()
    if rank == 0:
        torch.save(model.state_dict(), "checkpoint.pt")
    dist.barrier()
    labels = labels + 7 * rank * (attempt in {fails_in!r})
    """
        text = text.replace("    # HERE\n", begin.rstrip(" "))
        text += "\n    if rank == 0: torch.save([attempt, *model.state_dict().values()], 'end.pt')\n"
        # In the store of torchrun gloo may find the addresses of the first attempt, and fail (PyTorch 2.13).
        store = """f"file://{os.getcwd()}/store{os.environ['TORCHELASTIC_RESTART_COUNT']}\""""
        ranks = 'rank=int(os.environ["RANK"]), world_size=2'
        text = text.replace('init_process_group("gloo")', f'init_process_group("gloo", {store}, {ranks})')
        return torchrun(folder, text, launcher=["--standalone", "--max-restarts", "1"], **how)

    @pytest.mark.parametrize(("fails_in", "code"), [(["0"], 0), (["0", "1"], 1)])
    def test_the_launcher_sees_what_it_sees_without_us(self, tmp_path, fails_in, code):
        plain = self.ended(tmp_path / "plain", fails_in, observed=False)
        observed = self.ended(tmp_path / "observed", fails_in)
        assert (plain.returncode, observed.returncode) == (code, code), observed.stderr
        assert sorted(plain.stdout.splitlines()) == sorted(observed.stdout.splitlines())
        assert len(plain.stdout.splitlines()) == 4
        if code == 0:
            ends = [torch.load(tmp_path / name / "end.pt") for name in ("plain", "observed")]
            assert ends[0][0] == ends[1][0] == "1"
            assert all(torch.equal(one, other) for one, other in zip(ends[0][1:], ends[1][1:], strict=True))

    def test_each_attempt_has_its_reports(self, tmp_path):
        ended = self.ended(tmp_path / "observed", ["0"], options=["--output", "r.json"])
        assert ended.returncode == 0, ended.stderr
        files = {file.name for file in (tmp_path / "observed").glob("r*.json")}
        assert files >= {"r.rank1.json", "r.restart1.json", "r.restart1.rank1.json"}
        failed = json.loads((tmp_path / "observed" / "r.rank1.json").read_text())
        assert failed["findings"][0]["rule"] == "labels-out-of-range"
        assert json.loads((tmp_path / "observed" / "r.restart1.rank1.json").read_text())["findings"] == []


class TestExitCode:
    def run(self, folder, text, **environment):
        (folder / "train.py").write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "diagnostics", "run", "train.py"],
            cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    @pytest.mark.parametrize(("text", "code"), [("print(1)", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1)])
    def test_is_the_scripts_on_every_rank(self, tmp_path, text, code):
        told = []
        for rank in "01":
            ended = self.run(tmp_path, text, RANK=rank, WORLD_SIZE="2", TMPDIR=str(tmp_path))
            assert ended.returncode == code
            told.append("ran train.py, rank" in ended.stderr)
        assert told == [True, code == 1]  # the other rank tells its crash


class TestRank:
    @pytest.mark.parametrize(
        ("environment", "rank"),
        [
            ({}, None),
            ({"RANK": "1"}, None),
            ({"RANK": "x", "WORLD_SIZE": "2"}, None),
            ({"RANK": "1", "WORLD_SIZE": "2"}, Rank(1, 2, 2)),
            ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, Rank(5, 8, 4)),
            ({"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "3"}, Rank(1, 2, 2, 3)),
        ],
    )
    def test_is_read_from_the_environment(self, environment, rank):
        assert rank_of_this_process(environment) == rank

    def test_has_a_file_of_its_own(self, tmp_path):
        assert Rank(0, 2, 2).file(tmp_path / "r.json") == tmp_path / "r.json"
        assert Rank(1, 2, 2).file(tmp_path / "r.json") == tmp_path / "r.rank1.json"
        assert Rank(1, 2, 2).file(tmp_path / "report") == tmp_path / "report.rank1"

    def test_keeps_what_this_launch_has_written(self, tmp_path):
        rank, given = Rank(1, 2, 2), tmp_path / "r.json"
        (tmp_path / "r.rank1.json").write_text("of an earlier round, or of an earlier launch")
        written = (tmp_path / "r.rank1.json").stat().st_mtime
        assert rank.file(given, written + 1) == tmp_path / "r.rank1.json"
        assert rank.file(given, written - 1) == tmp_path / "r.restart1.rank1.json"
        (tmp_path / "r.restart1.rank1.json").touch()
        assert rank.file(given, written - 1) == tmp_path / "r.restart2.rank1.json"

    def test_has_a_file_for_each_attempt(self, tmp_path):
        assert Rank(0, 2, 2, 1).file(tmp_path / "r.json") == tmp_path / "r.restart1.json"
        assert Rank(1, 2, 2, 2).file(tmp_path / "r.json") == tmp_path / "r.restart2.rank1.json"


def report(*rules, severity="warning"):
    return Report("ran", tuple(Finding(rule, severity, "data", f"{rule} was seen\nmore", "fix") for rule in rules))


class TestExchange:
    def exchanges(self, folder, count, world=None, first=0):
        return [Exchange(Rank(n + first, world or count, count), folder / "x") for n in range(count)]

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
    def test_the_last_to_end_tells_what_rank_0_has_not_found(self, tmp_path, order):
        reports = [report("a", "b"), report("b", "c"), report("c", "a", "d")]
        ranks = self.exchanges(tmp_path, 3)
        told = [ranks[number].leave(reports[number]) for number in order]
        assert told == [
            [], [], ["rank 1 and 1 more: warning: c: c was seen", "rank 2: warning: d: d was seen"],
        ]  # fmt: skip
        assert not (tmp_path / "x").exists()

    def test_notes_are_not_told(self, tmp_path):
        zero, one = self.exchanges(tmp_path, 2)
        assert [zero.leave(report()), one.leave(report("a", severity="note"))] == [[], []]

    def test_a_host_without_rank_0_tells_each_finding_once(self, tmp_path):
        two, three = self.exchanges(tmp_path, 2, world=4, first=2)
        assert two.leave(report("a")) == []
        assert three.leave(report("a")) == ["rank 2 and 1 more: warning: a: a was seen"]

    def test_what_an_earlier_launch_left_is_not_read(self, tmp_path):
        self.exchanges(tmp_path, 2)[1].leave(report("old"))
        zero, one = self.exchanges(tmp_path, 2)
        assert [zero.leave(report("a")), one.leave(report("a"))] == [[], []]

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a process was started")
    def test_what_an_earlier_attempt_left_is_not_read(self, tmp_path):
        three = self.exchanges(tmp_path, 2, world=4, first=2)[1]
        three.leave(report("old"))
        assert three.is_first_to_crash()
        for file in (tmp_path / "x").iterdir():
            os.utime(file, (0, 0))  # before this process began
        zero, one = self.exchanges(tmp_path, 2, world=2)
        assert one.is_first_to_crash()
        assert [zero.leave(report("a")), one.leave(report("b"))] == [[], ["rank 1: warning: b: b was seen"]]

    def test_of_ranks_that_crash_alike_one_tells_it(self, tmp_path):
        ranks = self.exchanges(tmp_path, 3)
        assert [ranks[2].is_first_to_crash(), ranks[1].is_first_to_crash()] == [True, False]

    def test_where_nothing_can_be_exchanged_each_rank_tells_its_own(self, tmp_path):
        (tmp_path / "x").write_text("a file, where the folder should be")
        zero, one = self.exchanges(tmp_path, 2)
        assert [zero.leave(report("a")), one.leave(report("a"))] == [[], ["rank 1: warning: a: a was seen"]]
        assert one.is_first_to_crash()
