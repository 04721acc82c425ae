"""Text that others wrote, made safe for a terminal."""

from unicodedata import category

REPLACEMENT = "\ufffd"
# Controls (ESC), formats (right-to-left marks) and halves of characters move a cursor or cannot
# be written.
UNSAFE = ("Cc", "Cf", "Cs")
BREAKS = ("Zl", "Zp")


def printable(text: str) -> str:
    """The text on one line, with U+FFFD for every character that a terminal would act on."""
    return "".join(map(_safe, text))


def _safe(character: str) -> str:
    kind = category(character)
    if character in "\t\n\r" or kind in BREAKS:
        return " "
    return REPLACEMENT if kind in UNSAFE else character
