"""Reads a policy file, `syncline.toml`, and checks each key and value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from syncline import _core
from syncline.structured import parse_toml

from .metrics import DEFAULT_GATE, GROUP_METRICS, KINDS, Tolerance
from .rules import AMOUNT_UNITS, Policy, PolicyError, Rule, metric_hint

__all__ = ["CANT_TELL", "FILE", "read"]

# The policy that `syncline diff` reads from the working directory by default.
FILE = "syncline.toml"

CANT_TELL = ("power", "fail", "strict", "pass")
_WORSE = ("higher", "lower", "both", "none")
_KEYS = ("confidence", "tolerance", "min_runs", "max_loss", "cant_tell", "metrics", "rule")
_RULE_KEYS = ("metric", "worse", "tolerance", "confidence", *KINDS)


def read(path: Path) -> Policy:
    """Reads a policy.

    Raises:
        PolicyError: the file cannot be read, or a key or value is not valid.
    """
    try:
        data = parse_toml(path.read_bytes())
    except OSError as error:
        raise PolicyError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}",
            "check the name, or leave out --policy",
        ) from None
    except ValueError as error:
        raise PolicyError(
            f"{path} is not valid TOML: {error}",
            "docs/reference/diff.md has an example of a policy",
        ) from None
    return _Reader(path).policy(data)


class _Reader:
    """Reads one file. Every error names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def policy(self, data: dict[str, Any]) -> Policy:
        self.check_keys("", data, ("diff",))
        table = self.typed("diff", data.get("diff", {}), dict, "a table: [diff]")
        self.check_keys("diff", table, _KEYS)
        confidence = self.confidence("diff.confidence", table.get("confidence", 0.95))
        tolerance, _ = self.tolerance("diff.tolerance", table.get("tolerance"))
        if tolerance is not None and not tolerance.relative:
            raise self.error("diff.tolerance", f"'{table['tolerance']}' is an amount, but metrics have different units", "write a share of the base, like '5%'; a rule may have an amount")  # fmt: skip
        min_runs = self.typed("diff.min_runs", table.get("min_runs", 1), int, "a number of runs")
        if min_runs < 1:
            raise self.error("diff.min_runs", f"{min_runs} runs", "write 1 or more")
        cant_tell = table.get("cant_tell", CANT_TELL[0])
        if cant_tell not in CANT_TELL:
            raise self.error("diff.cant_tell", f"{cant_tell!r}", f"write one of: {', '.join(CANT_TELL)}")  # fmt: skip
        max_loss = table.get("max_loss")
        if max_loss is not None:
            try:
                _core.check_max_loss(str(max_loss))
            except _core.CoreError as error:
                raise self.error("diff.max_loss", str(error.args[0]), "write a number, or a percentage such as '1%'") from None  # fmt: skip
        metrics = table.get("metrics")
        if metrics is not None:
            self.typed("diff.metrics", metrics, list, 'a list of names: ["syncs", "*_p99"]')
            for name in metrics:
                self.typed("diff.metrics", name, str, 'a list of names: ["syncs", "*_p99"]')
        rules = tuple(
            self.rule(f"diff.rule {number}", rule, confidence)
            for number, rule in enumerate(
                self.typed("diff.rule", table.get("rule", []), list, "[[diff.rule]] in double brackets"), 1
            )
        )  # fmt: skip
        return Policy(
            confidence=confidence,
            tolerance=tolerance,
            min_runs=min_runs,
            max_loss=None if max_loss is None else str(max_loss),
            cant_tell=cant_tell,
            metrics=DEFAULT_GATE if metrics is None else tuple(metrics),
            rules=rules,
            path=self.path,
            unused=set(rules),
        )

    def rule(self, place: str, table: Any, min_confidence: float) -> Rule:
        self.typed(place, table, dict, "a table: [[diff.rule]]")
        self.check_keys(place, table, _RULE_KEYS)
        if "metric" not in table:
            raise self.error(place, "no metric", 'name one: metric = "syscall_latency_p99"')
        metric = self.typed(f"{place}: metric", table["metric"], str, "a name or a pattern")
        worse = table.get("worse")
        if worse is not None and worse not in _WORSE:
            raise self.error(f"{place}: worse", f"'{worse}'", f"write one of: {', '.join(_WORSE)}")
        kinds = [kind for kind in KINDS if kind in table]
        if len(kinds) > 1:
            raise self.error(place, f"{' and '.join(kinds)} in one rule", "write a rule for each")
        kind = kinds[0] if kinds else None
        pattern = None
        if kind:
            pattern = self.typed(f"{place}: {kind}", table[kind], str, "a pattern like '/var/db/*'")
            if not any(fnmatchcase(name, metric) for name in GROUP_METRICS):
                raise self.error(
                    f"{place}: metric",
                    f"'{metric}' is not known by {kind}",
                    metric_hint(metric, list(GROUP_METRICS)),
                )
        confidence = None
        if "confidence" in table:
            confidence = self.confidence(f"{place}: confidence", table["confidence"])
            if confidence < min_confidence:
                raise self.error(
                    f"{place}: confidence",
                    f"{confidence} is less than the {min_confidence} of the whole diff",
                    "a rule may only raise the confidence; to lower it, lower diff.confidence",
                )
        tolerance, unit = self.tolerance(f"{place}: tolerance", table.get("tolerance"))
        return Rule(metric, worse, tolerance, unit, confidence, kind, pattern, place)

    def check_keys(self, place: str, table: dict[str, Any], keys: Iterable[str]) -> None:
        keys = list(keys)
        for key in table:
            if key not in keys:
                close = difflib.get_close_matches(key, keys, 1)
                hint = f"did you mean {close[0]}? " if close else ""
                where = f"{place}: " if place else ""
                raise PolicyError(
                    f"{self.path}: {where}unknown key '{key}'",
                    f"{hint}the keys here are: {', '.join(keys)}",
                )

    def typed(self, place: str, value: Any, kind: type, wanted: str) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(place, f"{value!r}", f"write {wanted}")
        return value

    def confidence(self, place: str, value: Any) -> float:
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not 0.5 <= value <= 0.9999
        ):
            raise self.error(place, f"{value!r}", "write a number from 0.5 to 0.9999, like 0.95")
        return float(value)

    def tolerance(self, place: str, value: Any) -> tuple[Tolerance | None, str | None]:
        """Parses '5%', '2ms', '64KiB', or a number in the metric's own unit. Returns the unit, too."""
        if value is None:
            return None, None
        hint = "write a share of the base, like '5%', an amount like '2ms' or '64KiB', or a number in the metric's unit"
        text = str(value).strip()
        number = text.rstrip("%abcdefghijklmnopqrstuvwxyzµABCDEFGHIJKLMNOPQRSTUVWXYZ ")
        unit = text[len(number) :].strip()
        try:
            amount = float(number)
        except ValueError:
            raise self.error(place, f"{value!r}", hint) from None
        if isinstance(value, bool) or amount < 0 or amount != amount or amount == float("inf"):
            raise self.error(place, f"{value!r}", hint)
        if unit == "%":
            return Tolerance(amount / 100), unit
        if unit and unit not in AMOUNT_UNITS:
            raise self.error(place, f"{value!r}: no unit '{unit}'", hint)
        _, factor = AMOUNT_UNITS.get(unit, (None, 1))
        return Tolerance(amount * factor, relative=False), unit or None

    def error(self, place: str, what: str, hint: str) -> PolicyError:
        return PolicyError(f"{self.path}: {place}: {what}", hint)
