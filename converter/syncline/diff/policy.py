"""What fails a build: `syncline.toml`, checked word by word."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from syncline.errors import InputError
from syncline.losses import Limit

from .metrics import (
    DEFAULT_GATE,
    GROUP_METRICS,
    KINDS,
    NO_DIRECTION,
    Tolerance,
    Worse,
    default_tolerance,
)

__all__ = ["FILE", "Policy", "PolicyError", "Rule", "Watch", "read"]

# Where `syncline diff` looks when no policy is named.
FILE = "syncline.toml"

_CANT_TELL = ("fail", "strict", "pass")
_WORSE = ("higher", "lower", "both", "none")
_UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9} | {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
_KIND_OF_UNIT = dict.fromkeys(("ns", "us", "µs", "ms", "s"), "ns") | dict.fromkeys(
    ("B", "KiB", "MiB", "GiB"), "bytes"
)


class PolicyError(InputError):
    """The policy says what cannot be."""


@dataclass(frozen=True)
class Rule:
    """One `[[diff.rule]]`: what is said of the rows that it matches."""

    metric: str
    worse: Worse | None = None
    tolerance: Tolerance | None = None
    # Of the unit in which an absolute tolerance is written; None for a plain number.
    unit: str | None = None
    confidence: float | None = None
    kind: str | None = None
    pattern: str | None = None
    place: str = ""

    def matches(self, kind: str, name: str, metric: str) -> bool:
        """Whether it speaks of this row; a rule without a pattern speaks of the whole run."""
        if self.kind is None:
            return kind in ("", "query") and fnmatchcase(metric, self.metric)
        return (self.kind, self.pattern) == (kind, name) and fnmatchcase(metric, self.metric)


@dataclass(frozen=True)
class Watch:
    """How one row is judged."""

    gate: bool
    worse: Worse
    tolerance: Tolerance
    confidence: float


@dataclass(frozen=True)
class Policy:
    """All of a policy; without a file, the defaults."""

    confidence: float = 0.95
    tolerance: Tolerance | None = None
    min_runs: int = 1
    max_loss: str | None = None
    # `fail` where it looks worse, or could not look like anything; `strict` wherever it could be.
    cant_tell: str = "fail"
    metrics: tuple[str, ...] = DEFAULT_GATE
    rules: tuple[Rule, ...] = ()
    path: Path | None = None
    # Rules that no row has met yet; a rule that says nothing is a mistake.
    unused: set[Rule] = field(default_factory=set, compare=False)

    @property
    def narrow(self) -> bool:
        """Whether the gate was listed: then nothing beside it fails a build."""
        return self.metrics is not DEFAULT_GATE

    def watch(self, kind: str, name: str, metric: str, unit: str, *, gate: bool = False) -> Watch:
        """How a row is judged: by the defaults, then by each rule that speaks of it."""
        chosen = gate or (kind == "" and name == "all" and _any(self.metrics, metric))
        worse: Worse = "none" if _any(NO_DIRECTION, metric) and kind != "query" else "higher"
        tolerance = default_tolerance(metric)
        if self.tolerance is not None and tolerance.relative:
            tolerance = self.tolerance
        confidence = self.confidence
        for rule in self.rules:
            if not rule.matches(kind, name if rule.kind else "", metric) or (
                kind == "" and name != "all"
            ):
                continue
            self.unused.discard(rule)
            _check_unit(rule, metric, unit)
            chosen = True
            # A rule on what has no worse side of its own means: more is worse.
            worse = rule.worse or ("higher" if worse == "none" else worse)
            tolerance = rule.tolerance or tolerance
            confidence = rule.confidence or confidence
        return Watch(chosen and worse != "none", worse, tolerance, confidence)

    def patterns(self) -> list[tuple[str, str]]:
        """The (kind, pattern) that rules ask for, each once."""
        return list(dict.fromkeys((r.kind, r.pattern) for r in self.rules if r.kind and r.pattern))

    def check_used(self, metrics: Iterable[str]) -> None:
        """Refuses rules and gate metrics that met nothing.

        Raises:
            PolicyError: a name is probably misspelt.
        """
        known = sorted(set(metrics))
        for rule in sorted(self.unused, key=lambda rule: rule.place):
            there = list(GROUP_METRICS) if rule.kind else known
            if not any(fnmatchcase(name, rule.metric) for name in there):
                raise PolicyError(
                    f"{self.path}: {rule.place}: no metric '{rule.metric}'",
                    _meant(rule.metric, there),
                )
        for name in self.metrics:
            if self.narrow and not any(fnmatchcase(m, name) for m in known):
                raise PolicyError(
                    f"{self.path}: diff.metrics: no metric '{name}'", _meant(name, known)
                )


def _any(patterns: Iterable[str], metric: str) -> bool:
    return any(fnmatchcase(metric, pattern) for pattern in patterns)


def _check_unit(rule: Rule, metric: str, unit: str) -> None:
    wanted = _KIND_OF_UNIT.get(rule.unit or "")
    if rule.unit == "%" or rule.tolerance is None or rule.tolerance.relative:
        return
    if wanted is not None and wanted != unit:
        raise PolicyError(
            f"{rule.place}: a tolerance in {rule.unit} for {metric}, which is in {unit}",
            "write a part of the base, like '5%', or a number in the metric's unit",
        )


def read(path: Path) -> Policy:
    """Reads a policy.

    Raises:
        PolicyError: it cannot be read, or holds a key or value that has no meaning.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}",
            "check the name, or leave out --policy",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(
            f"{path} is no TOML: {error}", "docs/diff.md has a policy to begin with"
        ) from None
    return _Reader(path).policy(data)


_KEYS = ("confidence", "tolerance", "min_runs", "max_loss", "cant_tell", "metrics", "rule")
_RULE_KEYS = ("metric", "worse", "tolerance", "confidence", *KINDS)


class _Reader:
    """One file; every complaint names it and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def policy(self, data: dict[str, Any]) -> Policy:
        self.known("", data, ("diff",))
        table = self.typed("diff", data.get("diff", {}), dict, "a table: [diff]")
        self.known("diff", table, _KEYS)
        confidence = self.confidence("diff.confidence", table.get("confidence", 0.95))
        tolerance, _ = self.tolerance("diff.tolerance", table.get("tolerance"))
        if tolerance is not None and not tolerance.relative:
            raise self.error("diff.tolerance", f"'{table['tolerance']}' is in one unit, and metrics have several", "write a part of the base, like '5%'; a rule can say more")  # fmt: skip
        min_runs = self.typed("diff.min_runs", table.get("min_runs", 1), int, "a number of runs")
        if min_runs < 1:
            raise self.error("diff.min_runs", f"{min_runs} runs", "write 1 or more")
        cant_tell = table.get("cant_tell", "fail")
        if cant_tell not in _CANT_TELL:
            raise self.error("diff.cant_tell", f"{cant_tell!r}", f"it is one of: {', '.join(_CANT_TELL)}")  # fmt: skip
        max_loss = table.get("max_loss")
        if max_loss is not None:
            try:
                Limit.parse(str(max_loss))
            except ValueError as error:
                raise self.error("diff.max_loss", str(error), "write a number, or a share like '1%'") from None  # fmt: skip
        metrics = table.get("metrics")
        if metrics is not None:
            self.typed("diff.metrics", metrics, list, 'a list of names: ["syncs", "*_p99"]')
            for name in metrics:
                self.typed("diff.metrics", name, str, 'a list of names: ["syncs", "*_p99"]')
        rules = tuple(
            self.rule(f"diff.rule {number}", rule, confidence)
            for number, rule in enumerate(
                self.typed("diff.rule", table.get("rule", []), list, "[[diff.rule]], in two brackets"), 1
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

    def rule(self, place: str, table: Any, least: float) -> Rule:
        self.typed(place, table, dict, "a table: [[diff.rule]]")
        self.known(place, table, _RULE_KEYS)
        if "metric" not in table:
            raise self.error(place, "no metric", 'say which: metric = "syscall_latency_p99"')
        metric = self.typed(f"{place}: metric", table["metric"], str, "a name or a pattern")
        worse = table.get("worse")
        if worse is not None and worse not in _WORSE:
            raise self.error(f"{place}: worse", f"'{worse}'", f"it is one of: {', '.join(_WORSE)}")
        kinds = [kind for kind in KINDS if kind in table]
        if len(kinds) > 1:
            raise self.error(place, f"{' and '.join(kinds)} in one rule", "write a rule for each")
        kind = kinds[0] if kinds else None
        pattern = None
        if kind:
            pattern = self.typed(f"{place}: {kind}", table[kind], str, "a pattern like '/var/db/*'")
            if not _any_of(metric, GROUP_METRICS):
                raise self.error(
                    f"{place}: metric",
                    f"'{metric}' is not known by {kind}",
                    _meant(metric, list(GROUP_METRICS)),
                )
        confidence = None
        if "confidence" in table:
            confidence = self.confidence(f"{place}: confidence", table["confidence"])
            if confidence < least:
                raise self.error(
                    f"{place}: confidence",
                    f"{confidence} is less than the {least} of the whole diff",
                    "a rule may ask for more; for less, lower diff.confidence",
                )
        tolerance, unit = self.tolerance(f"{place}: tolerance", table.get("tolerance"))
        return Rule(metric, worse, tolerance, unit, confidence, kind, pattern, place)

    def known(self, place: str, table: dict[str, Any], keys: Iterable[str]) -> None:
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
        """'5%', '2ms', '64KiB', or a number in the metric's own unit."""
        if value is None:
            return None, None
        hint = "write a part of the base, like '5%', an amount like '2ms' or '64KiB', or a number in the metric's unit"
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
        if unit and unit not in _UNITS:
            raise self.error(place, f"{value!r}: no unit '{unit}'", hint)
        return Tolerance(amount * _UNITS.get(unit, 1), relative=False), unit or None

    def error(self, place: str, what: str, hint: str) -> PolicyError:
        return PolicyError(f"{self.path}: {place}: {what}", hint)


def _any_of(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}the metrics are: {', '.join(known)}"
