"""Writes what the fuzzers of converter/fuzz begin with: `python -m tests.fuzz_seeds FOLDER`.

The heads of real recordings, small generated logs and the bad inputs, each also as the low-level
log that the core makes of it; small files of trace-cmd, good and bad. A target reads its options
from the last two bytes of an input, or from the last one.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from syncline import _core

from tests.reference import badinputs, badtracedat, loggen, stracegen, tracedat

DATA = Path(__file__).parent / "data" / "thesis"
STRACE = Path(__file__).parent / "data" / "strace"
HEAD_BYTES = 3000
MAX_BYTES = 20_000
# How the text is read and cut (or what is written), as converter/fuzz/targets read it.
SUFFIXES = {
    "source_thesis": (b"\x04\x50", b"\x07\x00"),
    "source_events_jsonl": (b"\x04\x50",),
    "convert": (b"\x00\x00", b"\x22\x40", b"\x60\x00", b"\x04\x07", b"\x20\x0d"),
}


def logs() -> dict[str, bytes]:
    """Short texts in the thesis's format, or in none."""
    found = {}
    for file in sorted(DATA.glob("*.log")):
        data = file.read_bytes()[:HEAD_BYTES]
        found[file.name] = data[: data.rfind(b"\n") + 1]
    for name, make in badinputs.INPUTS.items():
        data = make().data
        found[name] = data if len(data) <= MAX_BYTES else data[:HEAD_BYTES]
    for seed in range(12):
        rng = random.Random(seed)
        params = loggen.random_params(rng)
        params.requests = 4
        found[f"generated-{seed}"] = loggen.generate(params, rng).log[:MAX_BYTES]
    return found


def trace_dats() -> dict[str, bytes]:
    """Small files of trace-cmd: a few events and pages, and formats of these events alone."""
    found = {name: make().data for name, make in badtracedat.BAD.items()}
    found = {name: data for name, data in found.items() if len(data) <= 2 * MAX_BYTES}
    world = tracedat.world(random.Random(1), requests=1, cpus=2)
    gaps = [tracedat.Gap(world.events[3].cpu, 3, 9), tracedat.Gap(world.events[6].cpu, 6, None)]
    world = tracedat.replace(world, gaps=gaps)
    mixed = {"p_extend": 0.2, "p_discarded": 0.2, "p_length": 0.2, "p_new_page": 0.1}
    for version, how in ((6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")):
        for big_endian, long in ((False, 8), (True, 4)):
            shape = tracedat.Shape(
                version=version,
                compression=how,
                big_endian=big_endian,
                long=long,
                page_bytes=512,
                offset="0x10",
                undescribed=tuple(
                    name for name in tracedat.EVENTS if name not in {e.name for e in world.events}
                ),
                stats="overrun: 7\ndropped events: 3",
                **mixed,
            )
            of = badtracedat.in_buffers(world) if how == "zlib" else world
            found[f"made-{version}-{how}-{big_endian}"] = tracedat.file(of, shape)
    return found


def straces() -> dict[str, bytes]:
    """The ends of real recordings, where most of the syncs are, and small made logs."""
    found = {}
    for file in [*STRACE.glob("*.log"), *STRACE.glob("odd-each.*")]:
        data = file.read_bytes()[-HEAD_BYTES:]
        found[file.name] = data[data.find(b"\n") + 1 :]
    for seed in range(8):
        rng = random.Random(seed)
        style = stracegen.Style(
            clock=("ttt", "tt", "r", "ns")[seed % 4], lengths=seed % 3 > 0, decorate=seed % 2 > 0
        )
        found[f"made-{seed}"] = stracegen.generate(rng, style, 6).text[:HEAD_BYTES]
    return found


def low_level(data: bytes) -> bytes | None:
    """The same as a low-level log; none where there is no event."""
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder, "log"), Path(folder, "out.events.jsonl")
        log.write_bytes(data)
        try:
            _core.convert([str(log)], str(out), source="thesis")
        except _core.CoreError:
            return None
        return out.read_bytes()[:MAX_BYTES]


def main(folder: Path) -> None:
    for target, suffixes in SUFFIXES.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in logs().items():
            texts = {"log": data, "jsonl": low_level(data)}
            if target == "source_thesis":
                del texts["jsonl"]
            if target == "source_events_jsonl":
                del texts["log"]
            for kind, text in texts.items():
                for number, suffix in enumerate(suffixes):
                    if text is not None:
                        seed = folder / target / f"{name}-{kind}-{number}"
                        seed.write_bytes(text + suffix)
    (folder / "source_trace_dat").mkdir(parents=True, exist_ok=True)
    for name, data in trace_dats().items():
        for number, options in enumerate((b"\x00", b"\x04")):
            (folder / "source_trace_dat" / f"{name}-{number}").write_bytes(data + options)
            if name.startswith("made"):
                (folder / "convert" / f"{name}-{number}").write_bytes(data + options + b"\x03")
    (folder / "source_strace").mkdir(parents=True, exist_ok=True)
    for name, data in straces().items():
        for number, options in enumerate((b"\x00\x50", b"\x04\x07")):
            (folder / "source_strace" / f"{name}-{number}").write_bytes(data + options)
        for number, options in enumerate((b"\x00\x00", b"\x28\x03", b"\x04\x07")):
            (folder / "convert" / f"{name}-{number}").write_bytes(data + options)
    (folder / "assemble").mkdir(parents=True, exist_ok=True)
    for seed in range(20):
        (folder / "assemble" / f"random-{seed}").write_bytes(random.Random(seed).randbytes(91))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
