"""The exceptions a caller of this package can meet, and the exit code each one means.

Exit codes of every command: 0 fine, 1 the thing asked about is wrong, 2 usage,
3 a source is unavailable.
"""


class SeedanceError(Exception):
    """Anything this package refuses or cannot do; the message is for an operator."""

    exit_code = 1


class UsageError(SeedanceError):
    """The configuration or a command line cannot be used as it stands."""

    exit_code = 2


class SourceUnavailableError(SeedanceError):
    """A driver, page, file system or server did not answer."""

    exit_code = 3


class DriverReleasedError(SourceUnavailableError):
    """The driver is not asked, because an operator wants to reload it or to reset GPUs."""
