"""The reader of BTF, on small data that is built by its documentation, and on the running kernel's if it has some."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from syncline.record.btf import Btf, BtfError

from tests.small_btf import FUNC, SmallBtf, kernel

VMLINUX = Path("/sys/kernel/btf/vmlinux")


@pytest.fixture(scope="module")
def btf() -> Btf:
    return Btf(kernel().data())


def target(btf: Btf, function: str, parameter: str) -> int:
    found = btf.pointed_to(dict(btf.parameters(function) or [])[parameter])
    assert found is not None
    return found


def test_parameters_have_names_and_types(btf: Btf) -> None:
    parameters = btf.parameters("ext4_sync_file")
    assert parameters is not None
    assert [name for name, _ in parameters] == ["filp", "start", "end", "datasync"]
    assert [btf.scalar(number) for _, number in parameters] == ["x64", "s64", "s64", "s32"]
    assert btf.parameters("sync_file") is None, "the end of another name"
    assert btf.parameters("dentry") is None, "the name of a type"


def test_members_are_found_through_anonymous_structs(btf: Btf) -> None:
    file = target(btf, "ext4_sync_file", "filp")
    path = btf.member(file, "f_path")
    assert path is not None
    assert path.bit_offset == 512
    dentry = btf.member(path.type_id, "dentry")
    assert dentry is not None
    inner = btf.pointed_to(dentry.type_id)
    assert inner is not None
    name = btf.member(inner, "d_name")
    assert name is not None
    length = btf.member(name.type_id, "len")
    assert length is not None
    assert (length.bit_offset, btf.scalar(length.type_id)) == (32, "u32")
    assert btf.member(file, "f_none") is None
    assert btf.member(length.type_id, "len") is None, "a number has no members"


def test_bit_fields_have_a_width(btf: Btf) -> None:
    bits = btf.member(target(btf, "submit_bio", "bio"), "bits")
    assert bits is not None
    high = btf.member(bits.type_id, "high")
    assert high is not None
    assert (high.bit_offset, high.bits) == (35, 2)


def test_a_module_continues_the_types_and_names_of_the_kernel() -> None:
    small = kernel()
    base = Btf(small.data())
    module = SmallBtf(small.next, len(small.names))
    module.known |= small.known
    # Its first name is at the start of its names.
    flags = module.struct("xfs_mount", ("m_flags", 3, 96))
    module.function("xfs_log_force_seq", ("mp", module.pointer(flags)), ("filp", 3))
    btf = Btf(module.data(), base)
    assert btf.parameters("ext4_sync_file") == base.parameters("ext4_sync_file") or (
        btf.parameters("ext4_sync_file") is None
    )
    parameters = btf.parameters("xfs_log_force_seq")
    assert parameters is not None
    assert [name for name, _ in parameters] == ["mp", "filp"]
    mount = btf.pointed_to(parameters[0][1])
    assert mount is not None
    member = btf.member(mount, "m_flags")
    assert member is not None
    assert (member.bit_offset, btf.scalar(member.type_id)) == (96, "u32")


def test_the_other_byte_order_is_read() -> None:
    small = SmallBtf(order=">")
    small.function("f", ("a", small.int("long", 8, True)))
    assert [name for name, _ in Btf(small.data()).parameters("f") or []] == ["a"]


@pytest.mark.parametrize("damage", ["magic", "cut", "kind", "type"])
def test_damaged_data_is_an_error(damage: str) -> None:
    data = kernel().data()
    if damage == "magic":
        data = b"\x7fELF" + data[4:]
    elif damage == "cut":
        data = data[:-10]
    elif damage == "kind":
        small = SmallBtf()
        small.add(31, "x", 0)
        data = small.data()
    else:
        small = SmallBtf()
        small.add(FUNC, "f", 77)
        with pytest.raises(BtfError, match="no type 77"):
            Btf(small.data()).parameters("f")
        return
    with pytest.raises(BtfError):
        Btf(data)


@pytest.mark.skipif(not VMLINUX.is_file(), reason="the kernel has no BTF")
def test_the_running_kernel_agrees_with_pahole() -> None:
    btf = Btf.read(VMLINUX)
    file = target(btf, "vfs_fsync_range", "file")
    inode = btf.member(file, "f_inode")
    assert inode is not None
    try:
        done = subprocess.run(
            ["pahole", "-C", "file", str(VMLINUX)], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("pahole is not installed")
    line = next(line for line in done.stdout.splitlines() if "f_inode;" in line)
    assert inode.bit_offset == 8 * int(line.split("/*")[1].split()[0])
