"""speedscope's JSON (https://www.speedscope.app/file-format-schema.json): one profile for each weight."""

from __future__ import annotations

import json
from typing import Any

from .picture import Picture
from .stacks import WEIGHTS

__all__ = ["render"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"count": "none", "ns": "nanoseconds", "bytes": "bytes"}


def render(picture: Picture) -> bytes:
    """Renders all weights; the requested weight is the active profile."""
    frames: dict[str, int] = {}
    profiles: dict[str, dict[str, Any]] = {}
    for name, weight in WEIGHTS.items():
        samples, weights = [], []
        for stack in picture.new.stacks.stacks:
            if stack.sums.get(name, 0) > 0:
                samples.append([frames.setdefault(frame, len(frames)) for frame in stack.frames])
                weights.append(stack.sums[name])
        if weights:
            profiles[name] = {
                "type": "sampled",
                "name": f"{weight.text} by {picture.how.text}",
                "unit": _UNITS[weight.unit],
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
    file = {
        "$schema": _SCHEMA,
        "name": picture.title(),
        "exporter": "syncline",
        "activeProfileIndex": list(profiles).index(picture.weight),
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": list(profiles.values()),
    }
    return (json.dumps(file, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
