"""`seedance-obs topology` as it is typed, and small texts for it to read."""

from click.testing import CliRunner, Result

from seedance_obs.cli import main

PREFIX = "topology.seedance.io/"
PAIR = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\tPIX\t0-7\t0\nGPU1\tNV4\t X \tSYS\t8-15\t1\nNIC0\tPIX\tSYS\t X \n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)
CUT = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-7\t0\nGPU1\tNV4\t X \t8-1"
P2P = "nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n"
NOTHING = "no topology here\n"
SEED_POLICY = """\
apiVersion: topology.seedance.io/v1
kind: TopologyPolicy
metadata: {name: training}
spec:
  affinityRules:
    - {type: nvlink-proximity, weight: 120}
    - {type: numa-locality, weight: 80}
  constraints:
    - {key: gpu-count, operator: Gt, value: 1}
"""


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, ["topology", *arguments], input=stdin)
