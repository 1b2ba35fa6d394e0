"""Where a launcher has put this process."""

import pytest

from diagnostics.collectors.network.launcher import Placement, first_node, placement
from diagnostics.errors import InvalidInput

TORCHRUN = {
    "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "node-a", "MASTER_PORT": "29501",
    "TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_USE_AGENT_STORE": "True",
}  # fmt: skip
SRUN = {
    "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "20007",
    "SLURM_STEP_NODELIST": "gpu[003-004]", "SLURM_STEP_ID": "1",
}  # fmt: skip
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),  # in the batch script, which is no rank
        ({**SRUN, "SLURM_STEP_NUM_TASKS": "1"}, None),
        (TORCHRUN, Placement("torchrun", 5, 8, 1, "node-a", 29501, "2", True)),
        ({**TORCHRUN, **SRUN}, Placement("torchrun", 5, 8, 1, "node-a", 29501, "2", True)),
        (SRUN, Placement("srun", 3, 4, 1, "gpu003", 30007, "1")),
        ({**SRUN, "MASTER_ADDR": "b", "MASTER_PORT": "7"}, Placement("srun", 3, 4, 1, "b", 7, "1")),
        (MPIRUN, Placement("mpirun", 1, 2, 1, "127.0.0.1", 29500)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_ADDR": "a"}, Placement("mpirun", 1, 2, 0, "a", 29500)),
    ],
)
def test_is_read_from_the_environment(environment, place):
    assert placement(environment) == place


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2"}, "was given RANK=1, WORLD_SIZE=2, and not MASTER_ADDR and MASTER_PORT"),
        ({**TORCHRUN, "RANK": "8"}, "RANK is 8 and WORLD_SIZE is 8. Ranks are counted from 0"),
        ({**TORCHRUN, "MASTER_PORT": "http"}, "MASTER_PORT is 'http', which is not a whole number"),
        ({**MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, r"mpirun -x MASTER_ADDR=\$\(hostname\)"),
    ],
)
def test_says_which_variable_is_wrong(environment, said):
    with pytest.raises(InvalidInput, match=said):
        placement(environment)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a1", "a1"), ("a1,b2", "a1"), ("gpu[003-007,011],login1", "gpu003"), ("r[1,5]-ib", "r1-ib")],
)
def test_slurms_list_of_hosts_begins_with_that_of_rank_0(nodes, first):
    assert first_node(nodes) == first
