import dataclasses
import tomllib
from pathlib import Path

import pytest

from seedance_obs.assets import assets_folder
from seedance_obs.config import OPTIONS, NodeSettings, split_address
from seedance_obs.config_reading import load_settings, parse_text
from seedance_obs.errors import UsageError

NODE_TOML = assets_folder("exporters") / "node.toml"


def write(folder: Path, text: str) -> Path:
    file = folder / "node.toml"
    file.write_text(text)
    return file


def test_the_shipped_file_shows_every_option_at_its_default():
    tables = tomllib.loads(NODE_TOML.read_text())
    shown = {f"{table}_{key}" for table, entries in tables.items() for key in entries}
    assert shown == set(OPTIONS)
    assert load_settings(NODE_TOML, {}, {}) == NodeSettings()


def test_the_shipped_file_says_what_each_option_is_for():
    text = " ".join(NODE_TOML.read_text().replace("\n#", " ").split())
    for name, option in OPTIONS.items():
        assert option.metadata["about"] in text, name


def test_flag_beats_environment_beats_file_beats_default(tmp_path):
    file = write(tmp_path, "[nvml]\ndeadline_seconds = 2\nstart_deadline_seconds = 9\n")
    environment = {"SEEDANCE_NVML_DEADLINE_SECONDS": "3", "SEEDANCE_NODE_NAME": "from-env"}
    settings = load_settings(file, environment, {"node_name": "from-flag", "dcgm_url": None})
    assert settings.nvml_start_deadline_seconds == 9.0
    assert settings.nvml_deadline_seconds == 3.0
    assert settings.node_name == "from-flag"
    assert settings.dcgm_timeout_seconds == NodeSettings().dcgm_timeout_seconds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[nvml]\ndedline_seconds = 2\n", "unknown option nvml.dedline_seconds; [nvml] has"),
        ("[nvlm]\nenabled = true\n", "unknown option nvlm.enabled; tables are"),
        ("[nvml]\nenabled = 1\n", "nvml.enabled = 1: wanted true or false"),
        ("[nvml]\ndeadline_seconds = 'x'\n", "wanted a number"),
        ("[nvml]\ndeadline_seconds = true\n", "wanted a number"),
        ("[node]\nexpected_gpus = 1.5\n", "wanted a whole number"),
        ("[node]\nname = 4\n", "wanted a text"),
        ("[merge]\norder = 'x'\n", "wanted a list of texts"),
        ("[merge]\norder = ['power_watts=rocm']\n", "wanted QUANTITY=SOURCE"),
        ("[merge]\norder = ['pwr=dcgm']\n", "wanted QUANTITY=SOURCE"),
        ("[sampler]\ninterval_seconds = 0\n", "more than 0 seconds"),
        (
            "[dcgm]\nurl = 'http://h:1/m'\ninterval_seconds = 60\n",
            "at most half of sampler.stale_after_seconds (30)",
        ),
        ("[merge]\norder = ['clock_graphics_hertz=dcgm']\n", "sources that can read it (nvml)"),
        ("[bandwidth]\ninterval_seconds = 0.01\n", "0.02 or more is needed"),
        ("[bandwidth]\ninterval_seconds = 6\n", "bandwidth.window_seconds = 15: at least three"),
        ("[bandwidth]\nwindow_seconds = 1e9\n", "at most 3600 is needed"),
        ("[fragmentation]\nplacements = 0\n", "fragmentation.placements: 1 or more is needed"),
        ("[server]\naddress = '127.0.0.1:\u00b2'\n", "wanted HOST:PORT"),
        ("[sampler]\ninterval_seconds = nan\n", "more than 0 seconds"),
        ("[attribution]\nworkload_limit = -1\n", "workload_limit = -1: 0 to 100000 is needed"),
        ("[attribution]\nended_seconds = 149\n", "ended_seconds = 149: at least 150 is needed"),
        ("[server]\naddress = '9400'\n", "wanted HOST:PORT"),
        ("[dcgm]\nurl = 'node:9400'\n", "an http:// URL is needed"),
        ("[nvml]\nlibrary = 'pynvlm'\n", "wanted pynvml, sim:MACHINE@EPOCH or replay:FILE"),
        ("interval = 3\n", "stands outside a table"),
        ("[nvml\n", "is not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_that_names_the_option(tmp_path, text, sentence):
    with pytest.raises(UsageError) as refusal:
        load_settings(write(tmp_path, text), {}, {})
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value).replace("line", "")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the configuration .*absent\.toml"):
        load_settings(tmp_path / "absent.toml", {}, {})


def test_bad_environment_names_the_variable():
    with pytest.raises(UsageError, match="SEEDANCE_NVML_ENABLED = 'maybe': wanted true or false"):
        load_settings(None, {"SEEDANCE_NVML_ENABLED": "maybe"}, {})


def test_every_option_can_be_written_as_text():
    for name, option in OPTIONS.items():
        default = option.default
        text = ";".join(default) if isinstance(default, tuple) else str(default).lower()
        assert parse_text(name, text, name) == default


def test_a_list_is_split_at_semicolons_since_its_items_have_commas():
    parsed = parse_text("merge_order", "power_watts=dcgm,nvml; energy_mj=dcgm", "flag")
    assert parsed == ("power_watts=dcgm,nvml", "energy_mj=dcgm")
    orders = dataclasses.replace(NodeSettings(), merge_order=parsed).source_orders()
    assert orders["power_watts"] == ("dcgm", "nvml")
    assert orders["utilization_ratio"] == ("nvml", "dcgm")


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:19400", ("127.0.0.1", 19400)), ("[::1]:0", ("::1", 0))],
)
def test_addresses(text, address):
    assert split_address(text, "x") == address
