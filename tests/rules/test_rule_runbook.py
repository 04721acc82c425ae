"""The runbook beside the rules: an entry for each alert that says something, and no other."""

from pathlib import Path

from seedance_obs.rules.check import check_rules
from tests.rules.small_rules import RUNBOOK, alert, check, folders, sentences

COMMAND = "`nvidia-smi`"


def test_a_runbook_entry_has_all_four_sections(folder: Path) -> None:
    (folder / "runbook.md").write_text(
        RUNBOOK.replace("### Impact\n", "").replace("### Mi", "#### Mi")
    )
    assert sentences(folder, alert()) == [
        "its runbook entry says nothing under ### Impact, ### Mitigation"
    ]


def test_a_section_without_text_says_nothing(folder: Path) -> None:
    (folder / "runbook.md").write_text(RUNBOOK.replace(COMMAND, ""))
    assert sentences(folder, alert()) == [
        "its runbook entry says nothing under ### Meaning, ### Impact, ### Diagnosis, "
        "### Mitigation"
    ]


def test_what_stands_in_a_block_of_code_is_no_heading(folder: Path) -> None:
    code = RUNBOOK.replace("### Meaning", "```\n### Meaning").replace(
        "### Impact", "```\n### Impact"
    )
    (folder / "runbook.md").write_text(code)
    assert sentences(folder, alert()) == ["its runbook entry says nothing under ### Meaning"]
    comment = RUNBOOK.replace(COMMAND, "```\n## as root\nnvidia-smi\n```")
    (folder / "runbook.md").write_text(comment)
    assert sentences(folder, alert()) == []


def test_a_diagnosis_shows_how_or_names_the_entry_that_does(folder: Path) -> None:
    (folder / "runbook.md").write_text(RUNBOOK.replace(COMMAND, "Look around."))
    assert sentences(folder, alert()) == ["its Diagnosis names no `command` or `query`"]
    other = RUNBOOK.replace("SeedanceTry", "SeedanceOther").replace("# Runbook\n", "")
    as_there = RUNBOOK.replace(COMMAND, "As of *SeedanceOther*.")
    (folder / "runbook.md").write_text(as_there + other)
    second = alert(alert="SeedanceOther", annotations={"runbook_url": "runbook.md#seedanceother"})
    assert sentences(folder, alert(), second) == []


def test_an_entry_is_of_an_alert_and_there_once(folder: Path) -> None:
    (folder / "runbook.md").write_text(RUNBOOK + "## SeedanceGone\n" + RUNBOOK)
    assert sorted((each.rule, each.sentence) for each in check(folder, alert())) == [
        ("SeedanceGone", "no alert here is called so"),
        ("SeedanceTry", "it has an entry already"),
    ]


def test_an_entry_is_not_stray_while_rules_cannot_be_read(folder: Path) -> None:
    (folder / "try.rules.yml").write_text("groups: [\n")
    assert len(check_rules(folders(folder))) == 1


def test_a_folder_without_a_runbook_has_no_entries(folder: Path) -> None:
    (folder / "runbook.md").unlink()
    assert sentences(folder, alert()) == ["runbook.md has no entry ## SeedanceTry"]
