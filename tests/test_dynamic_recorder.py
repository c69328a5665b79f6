"""The route `dynamic-events` without a kernel: probes.toml, its texts for several kernels, and a tracefs of plain files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syncline import _core
from syncline.record import (
    dynamic_events,
    effects,
    file_paths,
    kernel_facts,
    mounts,
    probe_group,
    probes,
    ring_pages,
    routes,
    seen_events,
    thread_states,
    tracefs,
    user_stacks,
)
from syncline.record.btf import Btf
from syncline.record.errors import RecordError
from syncline.record.probes import Features, Kernel

from tests import coretools
from tests.small_btf import ARRAY, ENUM, SmallBtf
from tests.small_btf import kernel as small_kernel

# The lines of tracefs/README by which a kernel says what it takes.
README_6_1 = "\t    place: [<module>:]<symbol>[+<offset>]|<memaddr>\n\t     fetcharg: $arg<N>\n"
README_6_12 = README_6_1 + (
    "\t           f[:[<group>/][<event>]] <func-name>[%return] [<args>]\n"
    "\t           <argname>[->field[->field|.field...]],\n\t           symstr, %pd/%pD\n"
)
FUNCTIONS = ["ext4_sync_file", "vfs_fsync_range", "submit_bio", "bio_endio"]


def a_kernel(readme: str = README_6_12, **more: object) -> Kernel:
    types = {"": Btf(small_kernel().data())}
    functions = dict.fromkeys(FUNCTIONS, "")
    return Kernel(Features.of(readme), functions, types, (6, 12), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def by_event() -> dict[str, probes.Probe]:
    return {probe.event: probe for probe in probes.load()[0]}


def text(probe: probes.Probe, function: str, kernel: Kernel) -> str:
    return probes.define(probe, function, kernel).texts[0]


class TestProbes:
    """What is written for each kernel."""

    def test_every_expression_is_one(self, by_event: dict[str, probes.Probe]) -> None:
        assert {"fsync_enter", "fsync_exit", "bio", "bio_end"} <= {
            probe.event for probe in by_event.values() if probe.required
        }
        for probe in by_event.values():
            assert probe.expects == "" or probe.expects in by_event
            for name, alternatives in probe.arguments:
                for expression in alternatives:
                    if expression.startswith("@"):
                        # A variable of the kernel, which may not name it.
                        assert name in probe.optional
                        continue
                    found = probes._EXPRESSION.fullmatch(expression)
                    assert found, expression
                    struct = probe.inside.partition(".")[0]
                    roots = (*probe.parameters, "$retval", *((struct, "offset") if struct else ()))
                    assert found[1] in roots

    def test_members_are_named_where_the_kernel_takes_names(
        self, by_event: dict[str, probes.Probe]
    ) -> None:
        assert text(by_event["bio"], "submit_bio", a_kernel()) == (
            "p:{group}/bio submit_bio bio=bio dev=bio->bi_bdev->bd_dev sector=bio->bi_iter.bi_sector"
            " bytes=bio->bi_iter.bi_size opf=bio->bi_opf end_io=bio->bi_end_io:symstr"
        )

    def test_older_kernels_get_offsets(self, by_event: dict[str, probes.Probe]) -> None:
        # bd_dev is at bit 416 of what is at bit 64; the numbers are those of tests/small_btf.py.
        assert text(by_event["bio"], "submit_bio", a_kernel(README_6_1)) == (
            "p:{group}/bio submit_bio bio=$arg1:x64 dev=+52(+8($arg1)):u32 sector=+32($arg1):u64"
            " bytes=+40($arg1):u32 opf=+16($arg1):u32 end_io=+56($arg1):symbol"
        )

    def test_names_of_parameters_are_those_of_the_function(
        self, by_event: dict[str, probes.Probe]
    ) -> None:
        """probes.toml says `file`, this kernel's BTF `filp`."""
        words = text(by_event["fsync_enter"], "ext4_sync_file", a_kernel()).split()
        assert "ino=filp->f_inode->i_ino" in words
        # An expression has at most 63 characters: +72 is the dentry, +24 a parent, +40 a name.
        assert "n1=filp->f_path.dentry->d_parent->d_name.name:string" in words
        assert "n3=+0(+40(+24(+24(+24(+72($arg1)))))):string" in words
        assert all(len(word.partition("=")[2]) <= 63 for word in words[2:])

    def test_no_register_and_no_offset_of_one_machine(
        self, by_event: dict[str, probes.Probe]
    ) -> None:
        """The same probes must be right on each architecture: fields are parameters, members of them, and $retval."""
        functions = dict.fromkeys(
            (name for probe in by_event.values() for _, name in probe.functions), ""
        )
        for readme in (README_6_1, README_6_12):
            kernel = replace(a_kernel(readme), functions=functions)
            texts = []
            for probe in by_event.values():
                for _, function in probe.functions:
                    with contextlib.suppress(probes.Unavailable):
                        texts += probes.define(probe, function, kernel).texts
            assert len(texts) > 10
            for line in texts:
                # No register (%di), no address of memory (@), no stack ($stack), no place in a function (f+4).
                for word in line.split()[2:]:
                    expression = word.partition("=")[2]
                    assert not re.search(r"%|^@|\(@|\$(?!arg\d|retval)", expression), line
                assert re.fullmatch(r"\w+(%return)?", line.split()[1]), line

    def test_a_return_probe_has_room_for_many_threads(
        self, by_event: dict[str, probes.Probe]
    ) -> None:
        kernel = a_kernel()
        probe = by_event["fsync_exit"]
        texts = probes.define(probe, "ext4_sync_file", kernel).texts
        assert texts[0] == "r1024:{group}/fsync_exit ext4_sync_file ret=$retval:s32"
        assert texts[1] == "f1024:{group}/fsync_exit ext4_sync_file%return ret=$retval:s32"
        slow = replace(kernel, has_fast_kprobes=False)
        assert probes.define(probe, "ext4_sync_file", slow).texts[0].startswith("f1024:")

    def test_what_runs_in_interrupts_is_an_fprobe(self, by_event: dict[str, probes.Probe]) -> None:
        assert text(by_event["bio_end"], "bio_endio", a_kernel()).startswith("f:")
        assert text(by_event["bio_end"], "bio_endio", a_kernel(README_6_1)).startswith("p:")

    def test_a_member_that_does_not_exist_is_left_out_if_optional(
        self, by_event: dict[str, probes.Probe]
    ) -> None:
        definition = probes.define(by_event["bio_end"], "bio_endio", a_kernel())
        assert dict(definition.missing) == {"remaining": "there is no member __bi_remaining"}
        assert "remaining" not in definition.texts[0]
        needed = replace(by_event["bio_end"], optional=frozenset())
        with pytest.raises(probes.Unavailable, match="__bi_remaining"):
            probes.define(needed, "bio_endio", a_kernel())

    def test_an_ambiguous_function_is_refused(self, by_event: dict[str, probes.Probe]) -> None:
        kernel = a_kernel(ambiguous=frozenset({"submit_bio"}))
        with pytest.raises(probes.Unavailable, match="several"):
            probes.define(by_event["bio"], "submit_bio", kernel)

    def test_bit_fields_and_arrays_have_offsets(self) -> None:
        btf = Btf(small_kernel().data())
        (_, bio), *_ = btf.parameters("submit_bio") or []
        assert probes._raw("$arg1", bio, "->bits.high", None, btf) == "+68($arg1):b2@3/32"
        assert probes._raw("$arg1", bio, "->text", "string", btf) == "+80($arg1):string"
        with pytest.raises(probes.Unavailable, match="no number"):
            probes._raw("$arg1", bio, "->bi_iter", None, btf)
        with pytest.raises(probes.Unavailable, match="no pointer"):
            probes._raw("$arg1", bio, "->bi_opf->x", None, btf)

    @pytest.mark.parametrize(
        ("mounted", "functions"),
        [
            ({"ext4"}, ["ext4_sync_file"]),
            ({"ext4", "ext3"}, ["ext4_sync_file"]),
            # xfs is mounted, and this kernel has no sync function of it.
            ({"ext4", "xfs"}, ["ext4_sync_file", "vfs_fsync_range"]),
            ({"newfs"}, ["vfs_fsync_range"]),
            (set(), []),
        ],
    )
    def test_sync_functions_are_those_of_mounted_file_systems(
        self, by_event: dict[str, probes.Probe], mounted: set[str], functions: list[str]
    ) -> None:
        assert probes.candidates(by_event["fsync_enter"], a_kernel(), mounted) == functions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a tracefs of plain files, in a root with BTF of a small kernel."""
    files = {
        "dynamic_events": "p:somebody/bio submit_bio bio=%di\nf:syncline_1_1/bio submit_bio\n",
        "README": README_6_12,
        "available_filter_functions": "".join(f"{name}\n" for name in FUNCTIONS) + "x [mod]\n",
        "error_log": "",
        "kprobe_profile": "  bio  100  3\n  other  5  7\n",
        "instances/.keep": "",
    }
    mounted = tmp_path / "sys/kernel/tracing"
    for name, content in files.items():
        (mounted / name).parent.mkdir(parents=True, exist_ok=True)
        (mounted / name).write_text(content)
    (tmp_path / "sys/kernel/btf").mkdir()
    (tmp_path / "sys/kernel/btf/vmlinux").write_bytes(small_kernel().data())
    kernel_facts._functions.cache_clear()
    return mounted


def root_of(folder: Path) -> Path:
    return folder.parents[2]


class TestGroup:
    """Definition and removal."""

    @pytest.fixture(autouse=True)
    def use_small_kernel(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = kernel_facts.read_kernel
        monkeypatch.setattr(
            kernel_facts, "read_kernel", lambda at, wanted: read(at, wanted, root_of(folder))
        )

    def test_the_probes_are_in_a_group_of_this_process(self, folder: Path) -> None:
        before = (folder / "dynamic_events").read_text()
        group = probe_group.ProbeGroup(folder)
        start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        assert group.name == f"syncline_{os.getpid()}_{start}"
        events = group.define({"ext4"})
        assert {
            f"{group.name}/{name}"
            for name in ("fsync_enter", "fsync_exit", "bio", "bio_end", "read")
        } == set(events)
        written = (folder / "dynamic_events").read_text()
        # Others' events are still there: the file was not truncated.
        assert written.startswith(before)
        assert written.count("/fsync_enter ext4_sync_file") == 1
        assert group.define({"ext4"}) == [], "they are defined once"
        assert (folder / "dynamic_events").read_text() == written
        assert group.remove() == []
        removed = (folder / "dynamic_events").read_text()[len(written) :].split()
        assert sorted(removed) == sorted(f"-:{event}" for event in events)

    def test_another_function_is_probed_if_one_has_no_effect(self, folder: Path) -> None:
        more = ["wait_on_page_writeback", "folio_wait_writeback"]
        (folder / "available_filter_functions").write_text("\n".join([*FUNCTIONS, *more]))
        kernel_facts._functions.cache_clear()
        group = probe_group.ProbeGroup(folder)
        group.define({"ext4"})
        before = (folder / "dynamic_events").read_text()
        assert group.define_others("fsync_enter") == ["vfs_fsync_range"]
        # The return of it too.
        new = (folder / "dynamic_events").read_text()[len(before) :].splitlines()
        assert [line.split()[:2] for line in new] == [
            [f"p:{group.name}/fsync_enter", "vfs_fsync_range"],
            [f"r1024:{group.name}/fsync_exit", "vfs_fsync_range"],
        ]
        assert group.define_others("fsync_enter") == [], "there is no other"
        assert group.define_others("bio") == [], "nor here"
        assert group.functions_of("bio") == ["submit_bio"]
        assert group.added_to == set(), "kprobes have an effect at once"

    def test_what_is_only_counted_is_not_recorded(self, folder: Path) -> None:
        group = probe_group.ProbeGroup(folder)
        assert group.is_counted(f"{group.name}/writepages")
        assert not group.is_counted(f"{group.name}/bio")

    def test_a_file_system_that_is_mounted_later_gets_its_probes(self, folder: Path) -> None:
        group = probe_group.ProbeGroup(folder)
        group.define({"ext4"})
        before = group.functions_probed
        assert group.define({"ext4", "newfs"}) == [], "a probe more, into the same event"
        assert group.functions_probed - before == {"vfs_fsync_range"}

    def test_the_report_says_what_is_not_recorded(self, folder: Path) -> None:
        group = probe_group.ProbeGroup(folder)
        group.define({"ext4"})
        report = json.loads(json.dumps(group.report.as_json()))
        assert report["probed"]["bio_end"] == [["bio_endio", "fprobe"]]
        assert report["unavailable"]["flush"] == "the kernel has no function blkdev_issue_flush"
        assert report["unavailable"]["wait_commit"] == "jbd2 is not loaded"
        assert report["not_mounted"]["xlog_force"] == ["xfs"]
        assert report["missing_fields"]["bio_end"] == {
            "remaining": "there is no member __bi_remaining"
        }
        summary = group.summary()
        assert "5 events by fprobe and kprobe on 3 functions" in summary
        assert "the wait for cache flushes" in summary
        assert "xfs" not in summary.partition("without")[0].replace("(xfs", "").replace(
            "of xfs", ""
        )

    def test_a_kernel_without_a_needed_function_is_refused(self, folder: Path) -> None:
        (folder / "available_filter_functions").write_text("ext4_sync_file\nsubmit_bio\n")
        kernel_facts._functions.cache_clear()
        group = probe_group.ProbeGroup(folder)
        with pytest.raises(RecordError, match="when a bio is complete"):
            group.define({"ext4"})

    def test_instead_of_a_refused_function_all_file_systems_are_probed(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An end without a start would belong to no request, so the return of a refused function is left out, too."""
        define = dynamic_events.define

        def refuse(at: Path, text: str) -> None:
            if text[0] in "fp" and " ext4_sync_file " in text:
                raise RecordError("Failed to register probe event: ext4_sync_file")
            define(at, text)

        monkeypatch.setattr(dynamic_events, "define", refuse)
        group = probe_group.ProbeGroup(folder)
        group.define({"ext4"})
        assert group.functions_of("fsync_enter") == ["vfs_fsync_range"]
        assert group.functions_of("fsync_exit") == ["vfs_fsync_range"]
        (said,) = group.report.gap_texts()
        assert "ext4_sync_file cannot be probed: Failed to register probe event" in said
        assert said.endswith("vfs_fsync_range is probed instead")

    def test_a_function_on_the_list_of_the_kernel_is_named(self, tmp_path: Path) -> None:
        (listed := tmp_path / "sys/kernel/debug/kprobes/blacklist").parent.mkdir(parents=True)
        listed.write_text("0xffffffff81000000-0xffffffff81000010\tdo_int3\n")
        assert kernel_facts.is_kept_from_kprobes("do_int3", tmp_path)
        assert not kernel_facts.is_kept_from_kprobes("do_int", tmp_path)
        assert not kernel_facts.is_kept_from_kprobes("do_int3", tmp_path / "none")

    def test_an_inlined_function_is_named(self, folder: Path) -> None:
        (folder / "available_filter_functions").write_text("ext4_sync_file\nbio_endio\n")
        kernel_facts._functions.cache_clear()
        with pytest.raises(RecordError, match="submit_bio: inlined"):
            probe_group.ProbeGroup(folder).define({"ext4"})

    def test_events_of_killed_recorders_are_removed(self, folder: Path) -> None:
        mine = dynamic_events.group()
        with (folder / "dynamic_events").open("a") as file:
            file.write(f"r1024:{mine}/a f\np:syncline_{os.getpid()}_1/b f\np:syncline_x/c f\n")
        dead = ["syncline_1_1", f"syncline_{os.getpid()}_1"]
        assert dynamic_events.remove_dead_groups(folder) == sorted(dead)
        removals = [
            line for line in (folder / "dynamic_events").read_text().splitlines() if line[0] == "-"
        ]
        assert sorted(removals) == sorted([f"-:{dead[0]}/bio", f"-:{dead[1]}/b"])

    def test_events_of_others_in_a_group_of_that_name_are_kept(self, folder: Path) -> None:
        taken = dynamic_events.group()
        with (folder / "dynamic_events").open("a") as file:
            file.write(f"p:{taken}/bio f\np:{taken}_2/bio f\n")
        group = probe_group.ProbeGroup(folder)
        group.define({"ext4"})
        assert group.name == f"{taken}_3"
        group.remove()
        removals = re.findall(r"^-:(\w+)/", (folder / "dynamic_events").read_text(), re.MULTILINE)
        assert set(removals) == {f"{taken}_3"}
        # That of a recorder that was killed.
        with (folder / "dynamic_events").open("a") as file:
            file.write("p:syncline_1_1_2/bio f\n")
        assert "syncline_1_1_2" in dynamic_events.remove_dead_groups(folder)

    def test_hits_and_misses_of_kprobes_are_counted(self, folder: Path) -> None:
        (folder / "dynamic_events").write_text(
            "p:one/bio submit_bio bio=%di\nf:one/bio_end bio_endio\nr1024:one/fsync_exit f\n"
            "p:uprobes/x /bin/sh:0x10\np:two/bio submit_bio\n"
        )
        # The same name is in two groups.
        (folder / "kprobe_profile").write_text("  bio  100  3\n  fsync_exit  5  0\n  bio  9  7\n")
        hits = dynamic_events.Hits
        assert dynamic_events.profile(folder, "one") == {
            "bio": hits(100, 3),
            "fsync_exit": hits(5, 0),
        }
        assert dynamic_events.profile(folder, "two") == {"bio": hits(9, 7)}
        assert dynamic_events.profile(folder, "nobody") == {}
        # In an order that is unknown, too many are better than too few.
        (folder / "kprobe_profile").write_text("  bio  9  7\n  bio  100  3\n  fsync_exit  5  2\n")
        assert dynamic_events.profile(folder, "one")["bio"].missed == 10


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "[   44.1] trace_fprobe: error: Invalid probed address or symbol\n"
            "  Command: f:g/e no_such_function a=1\n                 ^\n",
            "Invalid probed address or symbol: no_such_function",
        ),
        (
            "[   44.1] trace_kprobe: error: First\n  Command: p:g/e f\n           ^\n"
            "[   45.1] trace_probe: error: BTF_field is not found\n"
            "  Command: p:g/e f x=a->b\n                    ^\n",
            "BTF_field is not found: x=a->b",
        ),
        ("", None),
    ],
)
def test_the_kernel_says_why_it_refuses(log: str, reason: str | None) -> None:
    assert dynamic_events._reason(log) == reason


class TestMissing:
    """Why the route is not available. Each has a message, and the next route is taken."""

    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("sys/kernel/security/lockdown", "none integrity [confidentiality]", "locked down"),
            ("sys/kernel/tracing/README", "nothing", "no probes"),
            ("sys/kernel/tracing/dynamic_events", None, "no dynamic events"),
            ("sys/kernel/btf/vmlinux", None, "does not describe its types"),
            ("sys/kernel/btf/vmlinux", "text", "magic number"),
        ],
    )
    def test_the_reason_is_given(
        self, folder: Path, file: str, content: str | None, message: str
    ) -> None:
        path = root_of(folder) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        with pytest.raises(RecordError, match=message):
            kernel_facts.read_kernel(folder, ["submit_bio"], root_of(folder))

    def test_a_route_that_failed_is_not_chosen_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def route(name: routes.Name) -> routes.Route:
            return routes.Route(name, "it is there")

        monkeypatch.setattr(
            routes, "_ROUTES", {name: lambda *_, name=name: route(name) for name in routes.NAMES}
        )
        failed = {"ring-buffer": RecordError("a"), "dynamic-events": RecordError("b", "do c")}
        found = routes.choose(None, "command", failed)  # type: ignore[arg-type]
        assert found.name == "bpftrace"
        assert found.why == "it is there. ring-buffer: a. dynamic-events: b (do c)"


HISTOGRAM = """# event histogram
#
# trigger info: hist:keys=dev,ino,gen:vals=hitcount:sort=hitcount:size=16384 [active]
#

{ dev:    8388609, ino:         12, gen: 1168321486 } hitcount:         20
{ dev:         99, ino:         13, gen:          7 } hitcount:          1

Totals:
    Hits: 21
    Entries: 2
    Dropped: 4

# event histogram
#
# trigger info: hist:keys=common_pid,dev,ino:vals=hitcount:sort=hitcount:size=16384 [active]
#

{ common_pid:     TID, dev:    8388609, ino:         12 } hitcount:         20

Totals:
    Hits: 20
    Entries: 1
    Dropped: 0
"""
MOUNTINFO = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:1 /data/db /var/lib/my\\040db rw - ext4 /dev/sda1 rw
31 22 0:45 /@home /home rw - btrfs /dev/sdb rw,subvolid=257,subvol=/@home
32 22 0:5 / /proc rw - proc proc rw
33 22 0:50 / /mnt/s rw - fuse.sshfs host: rw
damaged
"""


class TestPaths:
    """files.jsonl."""

    @pytest.fixture
    def instance(self, tmp_path: Path) -> tracefs.Instance:
        event = tmp_path / "instance/events/g/fsync_enter"
        event.mkdir(parents=True)
        (event / "trigger").write_text("")
        (event / "hist").write_text(HISTOGRAM.replace("TID", str(os.getpid())))
        return tracefs.Instance(tmp_path, tmp_path / "instance")

    def test_each_file_has_a_line_with_its_path_or_a_reason(
        self, instance: tracefs.Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file_paths, "path_of", lambda mount, *_: f"{mount.point}a/b")
        monkeypatch.setattr(
            file_paths, "_text", lambda path: MOUNTINFO if path.endswith("mountinfo") else ""
        )
        paths = file_paths.FilePaths(instance, ["g/fsync_enter"])
        assert (instance.folder / "events/g/fsync_enter/trigger").read_text().count(
            "hist:keys="
        ) == 2
        paths.finish()
        outcome = paths.write(tmp_path / "files.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "files.jsonl").read_text().splitlines()]
        assert outcome == {"files": 2, "with_path": 1}
        assert rows[0] == {"dev": 8388609, "ino": 12, "generation": 1168321486, "path": "/a/b"}
        assert rows[1] == {
            "dev": 99,
            "ino": 13,
            "generation": 7,
            "reason": "its file system is not mounted here",
        }
        assert rows[2:] == [
            {"dev": 8388609, "mount": "/", "root": "/"},
            {"dev": 8388609, "mount": "/var/lib/my db", "root": "/data/db"},
        ]
        assert (paths.syncs, paths.dropped, paths.tids) == (21, 4, {os.getpid()})

    def test_the_syncs_of_several_events_are_counted(
        self, instance: tracefs.Instance, tmp_path: Path
    ) -> None:
        events = instance.folder / "events/g"
        shutil.copytree(events / "fsync_enter", events / "range_enter")
        paths = file_paths.FilePaths(instance, ["g/fsync_enter", "g/range_enter"])
        for _ in range(2):
            paths.poll()
            assert paths.syncs == 2 * 21
        paths.finish()
        assert (paths.dropped, paths.write(tmp_path / "files")["files"]) == (2 * 4, 2)

    def test_a_path_in_a_container_is_added(
        self, instance: tracefs.Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inside = "40 1 8:1 /data/db /var/lib/db rw - ext4 /dev/sda1 rw\n"
        host = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        answers = {
            "/proc/self/mountinfo": host,
            f"/proc/{os.getpid()}/mountinfo": inside,
            f"/proc/{os.getpid()}/cgroup": f"0::/system.slice/docker-{'ab' * 32}.scope\n",
        }
        monkeypatch.setattr(file_paths, "_text", lambda path: answers.get(path, ""))
        monkeypatch.setattr(
            file_paths, "_namespace", lambda pid: "mnt:[1]" if pid == "self" else "mnt:[2]"
        )
        monkeypatch.setattr(file_paths, "path_of", lambda *_: "/data/db/wal/1")
        paths = file_paths.FilePaths(instance, ["g/fsync_enter"])
        paths.poll()
        paths.write(tmp_path / "files.jsonl")
        row = json.loads((tmp_path / "files.jsonl").read_text().splitlines()[0])
        assert row["path"] == "/data/db/wal/1"
        assert row["container_path"] == "/var/lib/db/wal/1"
        assert row["container"] == "ab" * 32

    def test_a_file_that_was_written_back_before_its_sync_has_its_path_in_the_container(
        self, instance: tracefs.Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        inside = "40 1 8:1 /data/db /var/lib/db rw - ext4 /dev/sda1 rw\n"
        answers = {"/proc/self/mountinfo": host, f"/proc/{os.getpid()}/mountinfo": inside}
        monkeypatch.setattr(file_paths, "_text", lambda path: answers.get(path, ""))
        monkeypatch.setattr(
            file_paths, "_namespace", lambda pid: "mnt:[1]" if pid == "self" else "mnt:[2]"
        )
        monkeypatch.setattr(file_paths, "path_of", lambda *_: "/data/db/wal/1")
        events = instance.folder / "events/g"
        synced = (events / "fsync_enter/hist").read_text()
        shutil.copytree(events / "fsync_enter", events / "writepages")
        (events / "writepages/hist").write_text(synced.partition("# event histogram\n#\n")[2])
        (events / "fsync_enter/hist").write_text("")
        paths = file_paths.FilePaths(instance, ["g/fsync_enter"], ["g/writepages"])
        paths.poll()
        (events / "fsync_enter/hist").write_text(synced)
        paths.poll()
        paths.write(tmp_path / "files.jsonl")
        row = json.loads((tmp_path / "files.jsonl").read_text().splitlines()[0])
        assert (row["path"], row["container_path"]) == ("/data/db/wal/1", "/var/lib/db/wal/1")

    def test_a_name_that_is_no_utf_8_is_written(self) -> None:
        line = file_paths.json_line({"path": os.fsdecode(b"/a\xff")})
        assert json.loads(line.encode()) == {"path": "/a\ufffd"} or "\ufffd" in line


class TestThreadStates:
    """Which threads the kernel follows."""

    @pytest.fixture
    def switches(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """What the kernel has counted at each look; the last one is its count from then on."""
        counts = [0, 10**9]
        monkeypatch.setattr(thread_states, "_switches", lambda: counts.pop(0) if counts[1:] else counts[0])  # fmt: skip
        return counts

    @pytest.fixture
    def states(self, tmp_path: Path, switches: list[int]) -> thread_states.ThreadStates:
        return self.made(tmp_path)

    @staticmethod
    def made(tmp_path: Path) -> thread_states.ThreadStates:
        new_thread = tmp_path / "main/events/task/task_newtask"
        new_thread.mkdir(parents=True)
        (tmp_path / "threads/options").mkdir(parents=True)
        files = [new_thread / "hist", new_thread / "trigger", tmp_path / "threads/set_event_pid"]
        for file in [*files, tmp_path / "threads/options/event-fork"]:
            file.write_text("")
        ring = SimpleNamespace(
            instance=tracefs.Instance(tmp_path, tmp_path / "main"),
            add=lambda *_: SimpleNamespace(
                instance=tracefs.Instance(tmp_path, tmp_path / "threads"), enable=lambda _: None
            ),
        )
        return thread_states.ThreadStates(ring, (), 1024)  # type: ignore[arg-type]

    @staticmethod
    def followed(folder: Path) -> set[int]:
        """The file keeps what was written last, which plain appending makes a list of."""
        text = (folder / "threads/set_event_pid").read_text()
        nobody = str(int(Path("/proc/sys/kernel/pid_max").read_text()) - 1)
        return {int(tid) for tid in re.findall(r"1\d{6}", text.replace(nobody, " "))}

    def test_all_threads_are_recorded_until_the_machine_switches_often(
        self, switches: list[int], tmp_path: Path
    ) -> None:
        # Ten switches in the 50 ms before the recording, and none until the next look. Then a million, and then none.
        switches[:] = [0, 10, 10, 10**6, 10**6]
        states = self.made(tmp_path)
        states.follow({1000002})
        states.look()
        # A list, also one that is empty but for one id, would leave out the others.
        assert (tmp_path / "threads/set_event_pid").read_text() == ""
        states.look()
        assert self.followed(tmp_path) == {1000002}
        states.look()
        states.follow({1000003})
        assert self.followed(tmp_path) == {1000002, 1000003}

    def test_the_parent_of_a_short_lived_thread_is_followed(
        self, states: thread_states.ThreadStates, tmp_path: Path
    ) -> None:
        # 1000001 is a shell, which began two programs and 1000009; another process began 1000008. None of them exists any more.
        children = [(1000001, 1000002), (1000001, 1000003), (1000007, 1000008), (1, 1000001)]
        (tmp_path / "main/events/task/task_newtask/hist").write_text(
            "".join(
                f"{{ common_pid: {parent:>10}, pid: {child:>10} }} hitcount:          1\n"
                for parent, child in children
            )
        )
        states.follow({1000002})
        assert self.followed(tmp_path) == {1000001, 1000002, 1000003}
        states.follow({1000002})
        assert self.followed(tmp_path) == {1000001, 1000002, 1000003}

    def test_the_parent_of_a_thread_from_before_the_recording_is_that_of_its_process(
        self, states: thread_states.ThreadStates
    ) -> None:
        with subprocess.Popen(["sleep", "60"]) as child:
            # That is the recorder itself, which is no neighbour of its own.
            assert states._parent_of(child.pid) is None
            child.kill()
        ancestor = states._parent_of(os.getpid())
        assert ancestor == (os.getppid() if os.getppid() > 2 else None)


class TestMounts:
    """The mountinfo of a namespace."""

    def test_mounts_are_parsed(self) -> None:
        found = mounts.parse(MOUNTINFO)
        assert [(mount.dev, mount.point) for mount in found[:2]] == [
            (8 << 20 | 1, "/"),
            (8 << 20 | 1, "/var/lib/my db"),
        ]
        assert found[2].subvolume == 257
        assert len(found) == 5

    def test_only_file_systems_that_sync_count(self) -> None:
        assert mounts.types(MOUNTINFO) == {"ext4", "btrfs", "fuse"}

    def test_a_file_of_an_overlay_has_its_path_there(self) -> None:
        """As podman and Docker mount it; a volume of the container is not in the overlay."""
        layers = "/var/lib/docker/overlay2/"
        options = f"rw,lowerdir={layers}l/AB:{layers}l/CD,upperdir={layers}my\\040db\\054x/diff,workdir={layers}ab/work"
        found = mounts.parse(
            f"40 1 0:41 / / rw - overlay overlay {options}\n41 40 8:1 /v /data rw - ext4 /dev/sda1 rw\n"
        )
        assert mounts.place_in_overlay(found, f"{layers}my db,x/diff/a/b") == "/a/b"
        assert mounts.place_in_overlay(found, "/v/a") is None
        lower = mounts.parse("40 1 0:41 / / ro - overlay overlay ro,lowerdir=/a:/b\n")
        assert mounts.place_in_overlay(lower, "/a/x") is None

    def test_a_path_is_placed_by_the_closest_mount(self) -> None:
        found = mounts.parse(MOUNTINFO)
        assert mounts.place(found, 8 << 20 | 1, "/data/db/wal") == "/var/lib/my db/wal"
        assert mounts.place(found, 8 << 20 | 1, "/data/dbx") == "/data/dbx"
        assert mounts.place(found, 77, "/x") is None


def record(event: int, pid: int, rest: bytes = b"", delta: int = 0) -> bytes:
    """Returns an event with the common fields, as it is in a page."""
    data = struct.pack("=HHi", event, 0, pid) + rest
    return struct.pack("=I", len(data) // 4 | delta << 5) + data


def a_page(time_ns: int, *records: bytes) -> bytes:
    data = b"".join(records)
    # What is after the length is left over from an earlier use of the page.
    page = struct.pack("=QQ", time_ns, len(data)) + data + record(8, 0)
    return page.ljust(4096, b"\0")


def test_the_events_of_a_page_are_read() -> None:
    big = struct.pack("=II", 7 << 5, 4 + 120) + struct.pack("=H", 9) + bytes(118)
    extend = struct.pack("=II", 30 | 5 << 5, 1)
    discarded = struct.pack("=II", 29 | 1 << 5, 12) + bytes(8)
    stamp = struct.pack("=II", 31 | 3 << 5, 2)
    page = a_page(
        100, record(5, 1, delta=4), extend, big, discarded, record(7, 1), stamp, record(6, 1)
    )
    found = [
        (time, struct.unpack_from("=H", data)[0], len(data))
        for time, data in ring_pages.page_events(page)
    ]
    after = 104 + 5 + (1 << 27) + 7
    assert found == [(104, 5, 8), (after, 9, 120), (after + 1, 7, 8), (3 + (2 << 27), 6, 8)]


class TestUserStacks:
    """stacks.log without bpftrace."""

    def test_an_entry_gets_the_stack_that_follows_it(self) -> None:
        def stack(pid: int, *addresses: int) -> bytes:
            frames = [*addresses, 2**64 - 1] + [0] * (7 - len(addresses))
            return record(13, pid, struct.pack("=ii8Q", pid, 0, *frames))

        entry = struct.pack("=ii6q", 74, 0, 3, 0, 0, 0, 0, 0)
        page = a_page(
            1000,
            record(1, 7, entry),
            stack(7, 0x7F01, 0x7F02),
            record(2, 7, struct.pack("=iiq", 74, 0, -5)),
            # The stack of an exit is not used, and an entry may have none.
            stack(7, 0x7F03),
            record(1, 8, entry),
            record(1, 9, entry),
            stack(9, 0x7F09),
        )
        rows = list(
            user_stacks._with_stacks(
                ring_pages.page_events(page), {1: "fsync", 2: "fsync_exit"}, 13
            )
        )
        assert [(tid, call, len(data)) for _, tid, call, data in rows] == [
            (7, "fsync", 80),
            (7, "fsync_exit", 24),
            (8, "fsync", 0),
            (9, "fsync", 80),
        ]

    def test_the_log_is_read_like_that_of_bpftrace(self, tmp_path: Path) -> None:
        """A call, its stack and its result, through the files that a recording leaves."""
        instance = tmp_path / "instance"
        formats = {
            "syscalls/sys_enter_fsync": "ID: 1\n",
            "syscalls/sys_exit_fsync": "ID: 2\n",
            "ftrace/user_stack": "ID: 13\n\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\n",
        }
        for event, content in formats.items():
            (instance / "events" / event).mkdir(parents=True)
            (instance / "events" / event / "format").write_text(content)
        pages = tmp_path / "pages"
        stack = struct.pack("=ii8Q", 7, 0, 0x7F01, 0x7F02, 2**64 - 1, 0, 0, 0, 0, 0)
        pages.write_bytes(
            a_page(
                1000,
                record(1, 7, bytes(56)),
                record(13, 7, stack),
                record(2, 7, struct.pack("=iiq", 74, 0, -5), delta=90),
            )
        )
        stacks = user_stacks.UserStacks.__new__(user_stacks.UserStacks)
        stacks._ring = SimpleNamespace(page_bytes=4096, comms={7: "a b"})  # type: ignore[assignment]
        stacks._buffer = SimpleNamespace(  # type: ignore[assignment]
            instance=tracefs.Instance(tmp_path, instance),
            events=["syscalls/sys_enter_fsync", "syscalls/sys_exit_fsync"],
            pages=[pages],
        )
        log = tmp_path / "stacks.log"
        assert stacks.write(log) == {"calls": 2, "stacks": 1, "lost": 0}
        assert _core.unresolved_addresses([str(log)]) == [(7, "a b", {0x7F01, 0x7F02})]
        _core.convert([str(log)], f"{tmp_path}/out/")
        (call,) = coretools.tables(tmp_path / "out")["call"]
        assert (call["op"], call["comm"], call["ts_ns"], call["ret"]) == ("fsync", "a b", 1000, -5)
        assert call["stack"] == "0x7f02;0x7f01"


def a_call(tid: int, *inside: int, ret: int = 0) -> list[bytes]:
    """Returns the events of an fsync (1 and 2), with those of these numbers in it, as they are in a page."""
    events = [(1, b""), *((number, b"") for number in inside), (2, struct.pack("=iiq", 74, 0, ret))]
    return [struct.pack("=HHi", number, 0, tid) + rest for number, rest in events]


NAMES = {1: "sys_enter_fsync", 2: "sys_exit_fsync", 3: "fsync_enter", 4: "wb_start", 5: "wb_end"}


def seen_in(*events: bytes) -> seen_events.Seen:
    return seen_events.seen_in(enumerate(events), NAMES)


def test_what_happened_in_a_call_that_returned_is_known() -> None:
    first, second = a_call(7, 3), a_call(8, 4)
    # The calls of two threads overlap.
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    seen = seen_in(*mixed, *a_call(9, 99))
    assert seen.names == {"sys_enter_fsync", "sys_exit_fsync", "fsync_enter", "wb_start"}
    assert seen.in_calls == {"fsync_enter", "wb_start"}
    assert seen.calls == {"fsync"}
    # A call that fails may have entered nothing, and one that has not returned has not waited yet.
    assert seen_in(*a_call(7, 4, ret=-22)).in_calls == set()
    assert seen_in(*a_call(7, 4, ret=-22)).calls == set()
    assert seen_in(*a_call(7, 4)[:2]).in_calls == set()


@pytest.mark.parametrize(
    ("names", "in_calls", "calls", "hits", "expected"),
    [
        ("fsync_enter fsync_exit", "fsync_enter fsync_exit", "fsync", {}, {}),
        # A return without an entry. Kprobes are counted, fprobes are not.
        ("fsync_exit", "fsync_exit", "fsync", {"fsync_exit": 60}, {"fsync_enter": 60}),
        ("fsync_exit", "", "", {}, {"fsync_enter": 1}),
        # An entry in a call that has returned, without a return.
        ("fsync_enter", "fsync_enter", "fsync", {"fsync_enter": 20}, {"fsync_exit": 20}),
        ("bio wb_start bio_end", "bio wb_start", "", {}, {"wb_end": 1}),
        # In no call, or in a call that has not returned: it may be under way.
        ("bio wb_start", "", "", {}, {}),
        # Neither, but calls that enter the function.
        (
            "wait_commit wait_commit_end",
            "wait_commit wait_commit_end",
            "fdatasync",
            {},
            {"fsync_enter": 1},
        ),
        # On tmpfs, fsync does nothing. What another thread writes says nothing of it.
        ("", "", "fdatasync", {}, {}),
        ("bio bio_end", "", "fsync", {}, {}),
        ("", "", "sync_file_range", {}, {"range_enter": 1}),
        ("", "", "syncfs", {}, {"syncfs_enter": 1}),
        ("", "", "sync", {}, {"sync_inodes": 1}),
        ("syncfs_enter syncfs_exit", "", "syncfs", {}, {}),
        # A probe may be hit by events that its filter leaves out.
        ("fsync_exit", "", "", {"fsync_enter": 1, "fsync_exit": 1}, {}),
        # What has no probe is not without effect: the kernel has no such function.
        ("flush_end", "", "", {}, {}),
        ("", "", "", {}, {}),
    ],
)
def test_probes_without_effect_are_found(
    names: str, in_calls: str, calls: str, hits: dict[str, int], expected: dict[str, int]
) -> None:
    all_probes = probes.load()[0]
    probed = [probe.event for probe in all_probes if probe.event != "flush"]
    seen = seen_events.Seen(set(names.split()), set(in_calls.split()), set(calls.split()))
    profile = {name: dynamic_events.Hits(number) for name, number in hits.items()}
    assert effects.without_effect(all_probes, probed, seen, profile) == expected


class TestTracepoints:
    """Events on a tracepoint that has the address of a member of a struct."""

    @pytest.fixture
    def kernel(self) -> Kernel:
        btf = SmallBtf()
        u16, u32, u64 = (btf.int(f"u{8 * size}", size) for size in (2, 4, 8))
        text = btf.add(ARRAY, "", 0, btf.int("char", 1, signed=True), u32, 16)
        semaphore = btf.struct("rw_semaphore", ("count", u64, 0), ("owner", u64, 64))
        block = btf.struct("super_block", ("s_dev", u32, 128), ("s_magic", u64, 768))
        space = btf.struct("address_space", ("host", btf.pointer(u64), 0))
        btf.struct(
            "inode",
            ("i_mode", u16, 0), ("i_sb", btf.pointer(block), 320), ("i_mapping", btf.pointer(space), 384), ("i_ino", u64, 512),
            ("i_rwsem", semaphore, 1216),
        )  # fmt: skip
        btf.struct("task_struct", ("pid", u32, 800), ("comm", text, 1600))
        name = btf.name("BH_Shadow")
        btf.add(ENUM, "jbd_state_bits", 4, name, 24, count=1)
        functions = {"lock/contention_begin": "", "out_of_line_wait_on_bit": ""}
        features = Features.of(
            README_6_12 + "e:[x] <attached-group>.<attached-event> [<args>] [if <filter>]"
        )
        return Kernel(features, functions, {"": Btf(btf.data())}, (6, 12))

    def probe(self, **more: Any) -> probes.Probe:
        arguments = {
            "lock": "lock_addr", "at": "offset", "host": "inode->i_mapping->host", "ino": "inode->i_ino",
            "mode": "inode->i_mode", "magic": "inode->i_sb->s_magic:x64",
            "holder": "inode->i_rwsem.owner as task_struct->pid",
            "comm": "inode->i_rwsem.owner - 2 as task_struct->comm:string",
        }  # fmt: skip
        return probes.Probe(
            "inode_lock", "tracepoint", (("", "lock/contention_begin"),), ("lock_addr",),
            tuple((name, (text,)) for name, text in arguments.items()), frozenset(), "x",
            inside="inode.i_rwsem", condition="flags & 6", **more,
        )  # fmt: skip

    def test_expressions_begin_at_the_struct(self, kernel: Kernel) -> None:
        """The member is at 152; a place before it is negative. The pid is at 100, the name at 200 of its struct."""
        found = probes.define(self.probe(), "lock/contention_begin", kernel)
        assert found.texts == (
            "e:{group}/inode_lock lock.contention_begin lock=$lock_addr:x64 at=\\152:u32"
            " host=+0(-104($lock_addr)):x64 ino=-88($lock_addr):u64 mode=-152($lock_addr):u16"
            " magic=+96(-112($lock_addr)):x64 holder=+100(+8($lock_addr)):u32"
            " comm=+198(+8($lock_addr)):string if flags & 6",
        )

    def test_a_constant_has_the_value_of_this_kernel(self, kernel: Kernel) -> None:
        probe = self.probe(filter="bit == {jbd_state_bits.BH_Shadow}")
        assert probes.define(probe, "lock/contention_begin", kernel).filter == "bit == 24"
        # Without it, the event would be recorded for everything else, too.
        unknown = self.probe(filter="bit == {jbd_state_bits.BH_Other}")
        with pytest.raises(probes.Unavailable, match="BH_Other"):
            probes.define(unknown, "lock/contention_begin", kernel)

    def test_an_older_kernel_has_no_such_event(self, kernel: Kernel) -> None:
        old = replace(kernel, features=Features.of(README_6_12))
        with pytest.raises(probes.Unavailable, match="no events on tracepoints"):
            probes.define(self.probe(), "lock/contention_begin", old)
