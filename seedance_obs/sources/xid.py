"""What an XID code means for the person on call.

Grouped from NVIDIA's XID catalog (codes 1 to 172, as of 2025-10-29) and the actions it names,
with gpud's and NVSentinel's tables read beside it. NVIDIA, gpud and AWS disagree on some codes
(63, 64, 94), and the driver's own recovery action, where it can be read, is the better word.

- `application`: the program did it; its owner restarts it, the GPU is fine
- `contained`: the memory healed or fenced off an error itself; look at it when the node drains
- `consequence`: the echo of an earlier XID; never the cause, never alert on it alone
- `engine`: copy, video or context-switch engine faults; a ticket when they repeat
- `nvlink`: a link between GPUs, to a switch or to the CPU; fatal or not is in the kernel log
- `memory`: an error the GPU could not contain or repair; reset or replace it
- `driver`: firmware or driver stopped answering; the GPU is unusable until it is reset
- `bus`: the GPU left the PCI bus; the machine must be restarted
- `unclassified`: not in this table, as the catalog does not know it or names no action for it:
  154 says that the recovery action has changed, be it to none, 167 to 172 only what happened
"""

UNCLASSIFIED = "unclassified"

CODES: dict[str, tuple[int, ...]] = {
    "application": (11, 13, 25, 31, 32, 43, 69, 80, 137),
    "contained": (63, 92, 94),
    "consequence": (45,),
    "engine": (8, 39, 40, 41, 44, 68, 70, 71, 72),
    "nvlink": (74, 121, 136, 144, 145, 146, 147, 148, 149, 150, 155),
    "memory": (48, 64, 95, 140, 156),
    "driver": (46, 62, 109, 110, 119, 120, 143, 151, 158),
    "bus": (79,),
}

SEVERITY: dict[str, str] = {
    "application": "info",
    "contained": "info",
    "consequence": "info",
    "engine": "warning",
    "nvlink": "warning",
    "memory": "critical",
    "driver": "critical",
    "bus": "critical",
    UNCLASSIFIED: "warning",
}

_CLASS_OF = {code: name for name, codes in CODES.items() for code in codes}


def classify(code: int) -> str:
    """The class of an XID code; `unclassified` for one that the table does not hold."""
    return _CLASS_OF.get(code, UNCLASSIFIED)


def severity(code: int) -> str:
    """How loud an XID code is: `critical` (page), `warning` (ticket) or `info`."""
    return SEVERITY[classify(code)]
