"""What a PCI function is, by the words of pci.ids: all that `lspci -tv` prints of it.

A word that only one kind of device carries decides; a name of digits (`Device 2330`, a chip newer
than the machine's pci.ids) decides nothing.
"""

import re

from seedance_obs.topology.model import Kind

_CLASSES = {
    "vga compatible controller": "0300",
    "3d controller": "0302",
    "bridge": "0680",
    "host bridge": "0600",
    "pci bridge": "0604",
    "non-volatile memory controller": "0108",
    "ethernet controller": "0200",
    "infiniband controller": "0207",
    "fabric controller": "0208",
    "network controller": "0280",
}
_CODES = re.compile(r"\s*\[([0-9a-f]{4}):([0-9a-f]{4})\]\s*$")
_REVISION = re.compile(r"(\s*\((rev|prog-if) [^()]*\))+\s*$")
_NVIDIA = re.compile(r"^nvidia\b", re.IGNORECASE)
_CHIP = re.compile(r"\b(NV|G|GT|GF|GK|GM|GP|GV|TU|GA|AD|GH|GB|GR)\d{1,3}[A-Z]*\b")
_NO_GPU = re.compile(r"audio|usb|ucsi|serial|ethernet|bridge|memory controller", re.IGNORECASE)
_NVSWITCH = re.compile(r"NVSwitch", re.IGNORECASE)
_NVSWITCH_IDS = ("1ac0", "1ac1", "1ac2", "1af1", "22a3")
_NVME = re.compile(r"\bNVMe\b|Non-Volatile memory", re.IGNORECASE)
_NIC = re.compile(
    r"ConnectX|BlueField|\bEthernet\b|Infini[Bb]and|NetXtreme|Network (Adapter|Connection)"
    r"|Omni-Path|Elastic Fabric Adapter",
)
_NO_NIC = re.compile(r"Bridge|Management Interface|DMA|Crypto|NVMe", re.IGNORECASE)


def class_of(words: str) -> str:
    """The class of `3D controller` or `0302` as four hex digits; empty for one not needed here."""
    text = words.strip().lower()
    return text if re.fullmatch(r"[0-9a-f]{4}", text) else _CLASSES.get(text, "")


def split_codes(name: str) -> tuple[str, int | None, int | None]:
    """A name without revision and numbers, and the vendor and device numbers where it has them."""
    name = _REVISION.sub("", name).strip()
    numbers = re.fullmatch(r"([0-9a-f]{4}):([0-9a-f]{4})", name)
    if numbers:  # lspci -n has nothing else
        return "", int(numbers[1], 16), int(numbers[2], 16)
    codes = _CODES.search(name)
    if codes is None:
        return name, None, None
    return name[: codes.start()], int(codes[1], 16), int(codes[2], 16)


def is_nvidia(name: str) -> bool:
    """Whether a name begins with NVIDIA's, in any spelling."""
    return _NVIDIA.match(name) is not None


def kind_of_name(name: str, device: int | None) -> Kind | None:
    """The kind that a name tells; UNKNOWN for an NVIDIA function that pci.ids has no name for.

    None for everything that topology leaves out, the audio and USB functions of a GPU included.
    """
    if is_nvidia(name):
        return _kind_of_nvidia(name, device)
    if _NVME.search(name) and "RAID" not in name:
        return Kind.NVME
    return Kind.NIC if _NIC.search(name) and not _NO_NIC.search(name) else None


def name_in_brackets(name: str) -> str:
    """What people call it: `RTX A6000` of `NVIDIA Corporation GA102GL [RTX A6000]`, or nothing."""
    bracketed = re.search(r"\[([^\[\]]+)\]$", name)
    return bracketed[1] if bracketed else ""


def _kind_of_nvidia(name: str, device: int | None) -> Kind | None:
    unnamed = re.search(r"\bDevice ([0-9a-f]{4})$", name)
    number = unnamed[1] if unnamed else f"{device or 0:04x}"
    if _NVSWITCH.search(name) or number in _NVSWITCH_IDS:
        return Kind.NVSWITCH
    if _NO_GPU.search(name):
        return None
    if _CHIP.search(name):
        return Kind.GPU
    return Kind.UNKNOWN if unnamed else None
