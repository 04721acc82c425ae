"""The colour of each tenant: Okabe–Ito, the same wherever its name appears."""  # noqa: RUF002 - two people

from collections.abc import Iterable
from zlib import crc32

from seedance_obs.web.usage import UNALLOCATED

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
YELLOW = "#F0E442"  # the faintest on white: only when the others are taken
GREY = "#B4BAC5"
OTHERS = "#7C8698"


def tenant_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, chosen by the name alone where no two want the same.

    Past seven tenants colours repeat; `unallocated` is grey.
    """
    colours: dict[str, str] = {}
    for name in sorted(set(names) - {UNALLOCATED}):
        first = crc32(name.encode()) % len(OKABE_ITO)
        order = (*OKABE_ITO[first:], *OKABE_ITO[:first], YELLOW)
        free = [colour for colour in order if colour not in colours.values()]
        colours[name] = (free or order)[0]
    return colours | {UNALLOCATED: GREY}
