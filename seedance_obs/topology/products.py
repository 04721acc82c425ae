"""What NVIDIA's boards have by design, by the name that NVML and nvidia-smi print for them.

Names are those of the supported products in the README of NVIDIA/open-gpu-kernel-modules and, for
Pascal and Volta, of real `nvidia-smi` output; drivers before R470 leave out the `NVIDIA `. Memory
and NVLink figures are those of NVIDIA's data sheets and product briefs; NVLinks per generation are
also in the comments of open-mpi/hwloc's topology-nvml.c. A figure on which sources disagree, or in
which boards of one name differ, is None:

- `Tesla V100-SXM3-32GB`: printed as 900 and as 981 GB/s.
- `Quadro RTX 6000` and `8000`: the passive board has slower memory and the same name.
- `GeForce RTX 3060`, `3060 Ti`, `3080`, `4070`: sold with different memories.
- `RTX PRO 6000 Blackwell Server Edition`: printed as 1597 and as 1792 GB/s.

A name is matched as a whole: `A100-4C` (a vGPU), `RTX 4090 Laptop GPU` or `A1000` are other
things than the boards that they resemble.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """A board: GB/s are 10**9 bytes per second, NVLink's for one link and one way.

    `nvlinks` is 0 where the board cannot have any and None where that depends on a bridge (or,
    in a workstation, on the wiring). Other values are None where they are not known for certain.
    """

    memory: str | None
    memory_gbps: int | None
    nvlinks: int | None = 0
    nvlink_gbps: float | None = None


BRIDGED = None  # a number of links that depends on what is plugged between two boards
AMPERE_BRIDGE = 14.0625  # 112.5 GB/s both ways over four links

_TABLE: tuple[tuple[str, Product], ...] = (
    # Data centre, newest first
    ("GB300", Product("HBM3e", 8000, 18, 50)),
    ("GB200", Product("HBM3e", 8000, 18, 50)),
    (r"B300(?: SXM6(?: AC)?)?", Product("HBM3e", 8000, 18, 50)),
    ("B200", Product("HBM3e", 8000, 18, 50)),
    ("B100", Product("HBM3e", 8000, 18, 50)),
    ("GH200 144G HBM3e", Product("HBM3e", 4900, 18, 25)),
    ("GH200 (?:120|480)GB", Product("HBM3", 4000, 18, 25)),  # the size of Grace's own memory
    ("H200 NVL", Product("HBM3e", 4800, BRIDGED, 25)),
    ("H200", Product("HBM3e", 4800, 18, 25)),
    ("H100 80GB HBM3", Product("HBM3", 3350, 18, 25)),
    ("H100 NVL", Product("HBM3", 3938, BRIDGED, 25)),
    ("H100 PCIe", Product("HBM2e", 2039, BRIDGED, 25)),
    ("H800", Product("HBM3", 3350, 8, 25)),
    ("H800 PCIe", Product("HBM2e", 2039, BRIDGED, 25)),
    ("H20", Product("HBM3", 4000, 18, 25)),
    ("H20-3e", Product("HBM3e", 4800, 18, 25)),
    ("A100-SXM4-40GB", Product("HBM2", 1555, 12, 25)),
    ("A100-SXM4-80GB", Product("HBM2e", 2039, 12, 25)),
    ("A100-PCIE-40GB", Product("HBM2", 1555, BRIDGED, 25)),
    ("A100 80GB PCIe", Product("HBM2e", 1935, BRIDGED, 25)),
    ("A800-SXM4-40GB", Product("HBM2", 1555, 8, 25)),
    ("A800-SXM4-80GB", Product("HBM2e", 2039, 8, 25)),
    ("A800 80GB PCIe(?: LC)?", Product("HBM2e", 1935, BRIDGED, 25)),
    ("A800 40GB Active", Product("HBM2", 1555, BRIDGED, 25)),
    ("A30", Product("HBM2", 933, BRIDGED, 25)),
    ("A40", Product("GDDR6", 696, BRIDGED, AMPERE_BRIDGE)),
    ("A10G?", Product("GDDR6", 600)),
    ("A16", Product("GDDR6", 200)),
    ("A2", Product("GDDR6", 200)),
    ("L40S?", Product("GDDR6", 864)),
    ("L20", Product("GDDR6", 864)),
    ("L4", Product("GDDR6", 300)),
    ("Tesla T4", Product("GDDR6", 320)),
    ("Tesla V100-SXM2-(?:16|32)GB", Product("HBM2", 900, 6, 25)),
    ("Tesla V100-SXM3-32GB(?:-H)?", Product("HBM2", None, 6, 25)),
    ("Tesla V100-DGXS-(?:16|32)GB", Product("HBM2", 900, None, 25)),
    ("Tesla V100-PCIE-(?:16|32)GB", Product("HBM2", 900)),
    ("Tesla V100S-PCIE-32GB", Product("HBM2", 1134)),
    ("Tesla P100-SXM2-16GB", Product("HBM2", 732, 4, 20)),
    ("Tesla P100-PCIE-16GB", Product("HBM2", 732)),
    ("Tesla P100-PCIE-12GB", Product("HBM2", 549)),
    ("Tesla P40", Product("GDDR5", 346)),
    ("Tesla P4", Product("GDDR5", 192)),
    ("Tesla M60", Product("GDDR5", 160)),  # each of its two GPUs
    ("Tesla K80", Product("GDDR5", 240)),  # each of its two GPUs
    # Workstations
    ("RTX PRO 6000 Blackwell (?:Max-Q )?Workstation Edition", Product("GDDR7", 1792)),
    ("RTX PRO 6000 Blackwell Server Edition", Product("GDDR7", None)),
    ("RTX PRO 5000 Blackwell", Product("GDDR7", 1344)),
    ("RTX PRO 4500 Blackwell", Product("GDDR7", 896)),
    ("RTX PRO 4000 Blackwell", Product("GDDR7", 672)),
    ("RTX (?:6000|5880) Ada Generation", Product("GDDR6", 960)),
    ("RTX 5000 Ada Generation", Product("GDDR6", 576)),
    ("RTX 4500 Ada Generation", Product("GDDR6", 432)),
    ("RTX 4000 Ada Generation", Product("GDDR6", 360)),
    ("RTX A6000", Product("GDDR6", 768, BRIDGED, AMPERE_BRIDGE)),
    ("RTX A5[05]00", Product("GDDR6", 768, BRIDGED, AMPERE_BRIDGE)),
    ("RTX A4500", Product("GDDR6", 640, BRIDGED, AMPERE_BRIDGE)),
    ("RTX A4000", Product("GDDR6", 448)),
    ("RTX A2000(?: 12GB)?", Product("GDDR6", 288)),
    ("Quadro RTX [68]000", Product("GDDR6", None, BRIDGED, 25)),
    ("Quadro RTX 5000", Product("GDDR6", 448, BRIDGED, 25)),
    ("Quadro RTX 4000", Product("GDDR6", 416)),
    # Desktops
    ("GeForce RTX 5090(?: D)?", Product("GDDR7", 1792)),
    ("GeForce RTX 5080", Product("GDDR7", 960)),
    ("GeForce RTX 5070 Ti", Product("GDDR7", 896)),
    ("GeForce RTX 5070", Product("GDDR7", 672)),
    ("GeForce RTX 5060(?: Ti)?", Product("GDDR7", 448)),
    ("GeForce RTX 4090(?: D)?", Product("GDDR6X", 1008)),
    ("GeForce RTX 4080 SUPER", Product("GDDR6X", 736)),
    ("GeForce RTX 4080", Product("GDDR6X", 717)),
    ("GeForce RTX 4070 Ti SUPER", Product("GDDR6X", 672)),
    ("GeForce RTX 4070 (?:Ti|SUPER)", Product("GDDR6X", 504)),
    ("GeForce RTX 4070", Product(None, None)),
    ("GeForce RTX 4060 Ti", Product("GDDR6", 288)),
    ("GeForce RTX 4060", Product("GDDR6", 272)),
    ("GeForce RTX 3090 Ti", Product("GDDR6X", 1008, BRIDGED, AMPERE_BRIDGE)),
    ("GeForce RTX 3090", Product("GDDR6X", 936, BRIDGED, AMPERE_BRIDGE)),
    ("GeForce RTX 3080 Ti", Product("GDDR6X", 912)),
    ("GeForce RTX 3080", Product("GDDR6X", None)),
    ("GeForce RTX 3070 Ti", Product("GDDR6X", 608)),
    ("GeForce RTX 3070", Product("GDDR6", 448)),
    ("GeForce RTX 3060 Ti", Product(None, None)),
    ("GeForce RTX 3060", Product("GDDR6", None)),
    ("GeForce RTX 2080 Ti", Product("GDDR6", 616, BRIDGED, 25)),
    ("GeForce RTX 2080 SUPER", Product("GDDR6", 496, BRIDGED, 25)),
    ("GeForce RTX 2080", Product("GDDR6", 448, BRIDGED, 25)),
    ("GeForce RTX 2070 SUPER", Product("GDDR6", 448, BRIDGED, 25)),
    ("GeForce RTX 2070", Product("GDDR6", 448)),
    ("GeForce RTX 2060 SUPER", Product("GDDR6", 448)),
    ("GeForce RTX 2060", Product("GDDR6", 336)),
    ("GeForce GTX 1080 Ti", Product("GDDR5X", 484)),
    ("TITAN RTX", Product("GDDR6", 672, BRIDGED, 25)),
    ("TITAN V", Product("HBM2", 653)),
    ("TITAN Xp", Product("GDDR5X", 548)),
    (r"TITAN X \(Pascal\)", Product("GDDR5X", 480)),
    ("GeForce GTX TITAN X", Product("GDDR5", 336)),
)
_PATTERNS = tuple((re.compile(pattern), product) for pattern, product in _TABLE)

# `1g.10gb`, `1c.2g.20gb`, `1g.10gb+me`: an instance carries the name of its board before it.
_MIG_PROFILE = re.compile(r" MIG (?:\d+c\.)?\d+g\.\d+gb(?:[+-][\w.+-]+)?$")


def product(model: str) -> Product | None:
    """The board of a model name, also of a MIG instance on it; None for a name not in the table.

    Names of virtual GPUs are not in the table: what they hold is not the board.
    """
    name = _MIG_PROFILE.sub("", " ".join(model.split())).removeprefix("NVIDIA ")
    for pattern, found in _PATTERNS:
        if pattern.fullmatch(name):
            return found
    return None
