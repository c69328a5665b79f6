"""Reads JSON and TOML files strictly: they may have been edited, damaged, or written by someone else."""

from __future__ import annotations

import json
import tomllib
from typing import Any, NoReturn

__all__ = ["parse_json", "parse_toml", "text", "whole_number"]


def parse_json(data: bytes) -> Any:
    """Parses JSON in UTF-8.

    Raises:
        ValueError: it is not JSON, a key is there twice, a number is not finite, or it is nested too deeply.
    """
    try:
        return json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_distinct, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise _too_deep() from None


def parse_toml(data: bytes) -> dict[str, Any]:
    """Parses TOML in UTF-8.

    Raises:
        ValueError: it is not TOML, or it is nested too deeply.
    """
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise _too_deep() from None


def whole_number(value: object, below: int, *, least: int = 0) -> int:
    """Returns a number if it is whole and in the range, else raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < below:
        raise ValueError(f"{value!r} is not a whole number from {least} to {below - 1}")
    return value


def text(value: object) -> str:
    """Returns a text if it is one that UTF-8 can hold, else raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    value.encode()
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice"
        )
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")


def _too_deep() -> ValueError:
    return ValueError("it is nested too deeply")
