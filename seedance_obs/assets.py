"""Where the product folders are: inside an installed wheel, or in the checkout."""

from importlib.resources import files
from pathlib import Path

from seedance_obs.errors import SeedanceError

KINDS = ("exporters", "dashboards", "alerts")


def assets_folder(kind: str) -> Path:
    """The folder of one product kind (`exporters`, `dashboards` or `alerts`).

    Raises:
        SeedanceError: the installation has lost its product files.
    """
    package = Path(str(files("seedance_obs")))
    for candidate in (package / "_assets" / kind, package.parent / kind):
        if candidate.is_dir():
            return candidate
    raise SeedanceError(f"no {kind} folder beside {package}: reinstall seedance-obs")
