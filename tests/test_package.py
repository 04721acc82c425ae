"""What users install: one package with its product files, and nothing stale in it."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from seedance_obs import __version__
from seedance_obs.dashboards.build import dashboards
from seedance_obs.generate import generated_files

ROOT = Path(__file__).parent.parent
GENERATED = (
    "exporters/METRICS.md",
    "exporters/node.prom",
    *(f"dashboards/{name}" for name in dashboards()),
)
PRODUCT_FOLDERS = ("exporters", "dashboards", "alerts", "deploy")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist, and the wheel built from it, as `python -m build` does for a release."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def tracked(folder: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return set(listed.stdout.split())


def test_the_wheel_has_one_top_level_name_and_every_product_file(built):
    names = zipfile.ZipFile(built[1]).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "seedance_obs",
        f"seedance_obs-{__version__}.dist-info",
    }
    product = {
        f"seedance_obs/_assets/{file}"
        for folder in ("exporters", "dashboards", "alerts")
        for file in tracked(folder)
    }
    assert len(product) > 5
    assert {name for name in names if "/_assets/" in name} == product
    package = {file for file in tracked("seedance_obs") if "__pycache__" not in file}
    assert package <= set(names)


def test_the_sdist_has_what_the_wheel_and_the_tests_need(built):
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for file in (
        "LICENSE",
        "README.md",
        "Makefile",
        "alerts/health.rules.yml",
        "tests/test_hosts.py",
    ):
        assert file in names


def test_the_wheel_works_outside_the_checkout(built, tmp_path):
    site, copied = tmp_path / "site", tmp_path / "copied"
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(site)
    command = [sys.executable, "-P", "-m", "seedance_obs", "assets", "copy", str(copied)]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    for folder in ("exporters", "dashboards", "alerts"):
        for file in tracked(folder):
            assert (copied / file).read_bytes() == (ROOT / file).read_bytes()


def test_product_folders_hold_no_python():
    assert [str(file) for name in PRODUCT_FOLDERS for file in (ROOT / name).rglob("*.py*")] == []


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return generated_files()


def test_every_generated_file_is_compared(generated):
    assert sorted(generated) == sorted(GENERATED)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_files_are_fresh(generated, name):
    assert (ROOT / name).read_text() == generated[name], "run `make generate`"
