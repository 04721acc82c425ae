"""Reads the node exporter's options from a file, the environment and flags."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedance_obs.config import OPTIONS, NodeSettings
from seedance_obs.errors import UsageError

ENVIRONMENT_PREFIX = "SEEDANCE_"


def load_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> NodeSettings:
    """The settings from file, environment and flags, in rising order of precedence.

    Raises:
        UsageError: an unknown key, a wrong type, a value out of range or an unreadable file.
    """
    values: dict[str, Any] = {}
    if file is not None:
        values.update(_read_file(file))
    values.update(_read_environment(environment))
    values.update({name: value for name, value in flags.items() if value is not None})
    return NodeSettings(**values)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from error
    values = {}
    for table, entries in tables.items():
        if not isinstance(entries, dict):
            raise UsageError(f"{file}: {table!r} stands outside a table; tables are {_tables()}")
        for key, value in entries.items():
            name = f"{table}_{key}"
            if name not in OPTIONS:
                raise UsageError(f"{file}: unknown option {table}.{key}{_suggest(table)}")
            values[name] = _check_type(name, value, f"{file}: {table}.{key}")
    return values


def _tables() -> str:
    return ", ".join(sorted({f"[{name.partition('_')[0]}]" for name in OPTIONS}))


def _suggest(table: str) -> str:
    keys = [name.partition("_")[2] for name in OPTIONS if name.startswith(f"{table}_")]
    if not keys:
        return f"; tables are {_tables()}"
    return f"; [{table}] has {', '.join(sorted(keys))}"


def _check_type(name: str, value: Any, where: str) -> Any:
    default = OPTIONS[name].default
    if isinstance(default, bool) or isinstance(value, bool):
        good = isinstance(default, bool) and isinstance(value, bool)
    elif isinstance(default, float):
        good = isinstance(value, int | float)
    elif isinstance(default, tuple):
        good = isinstance(value, list) and all(isinstance(part, str) for part in value)
        value = tuple(value) if good else value
    else:
        good = isinstance(value, type(default))
    if not good:
        raise UsageError(f"{where} = {value!r}: wanted {_kind(default)}")
    return float(value) if isinstance(default, float) else value


def _kind(default: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names.get(type(default), "a list of texts")


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in OPTIONS:
        variable = ENVIRONMENT_PREFIX + name.upper()
        if variable in environment:
            values[name] = parse_text(name, environment[variable], variable)
    return values


def parse_text(name: str, text: str, where: str) -> Any:
    """An option's value from a flag or an environment variable; lists are split at semicolons.

    Raises:
        UsageError: the text does not have the option's type.
    """
    default = OPTIONS[name].default
    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
    except (KeyError, ValueError) as error:
        raise UsageError(f"{where} = {text!r}: wanted {_kind(default)}") from error
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(";") if part.strip())
    return text
