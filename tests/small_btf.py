"""Builds BTF by its documentation (Documentation/bpf/btf.rst), for tests of the reader."""

from __future__ import annotations

import struct

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF = range(1, 9)
VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT = range(9, 17)
KIND_FLAG = 1 << 31


class SmallBtf:
    """Types are numbered from `first`, names are placed from `first_name`, as in the BTF of a module."""

    def __init__(self, first: int = 1, first_name: int = 0, order: str = "<") -> None:
        self.next = first
        self.first_name = first_name
        self.order = order
        self.types = b""
        # Names of a module do not begin with the empty one, which is that of the kernel.
        self.names = b"" if first_name else b"\0"
        self.known = {"": 0}

    def name(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = self.first_name + len(self.names)
            self.names += text.encode() + b"\0"
        return self.known[text]

    def add(
        self, kind: int, name: str, third: int, *words: int, count: int = 0, flag: int = 0
    ) -> int:
        info = kind << 24 | count | flag
        self.types += struct.pack(
            f"{self.order}{3 + len(words)}I", self.name(name), info, third, *words
        )
        self.next += 1
        return self.next - 1

    def int(self, name: str, size: int, signed: bool = False) -> int:
        return self.add(INT, name, size, signed << 24 | size * 8)

    def pointer(self, to: int) -> int:
        return self.add(PTR, "", to)

    def struct(self, name: str, *members: tuple[str, int, int], kind: int = STRUCT) -> int:
        """Members: name, type, offset in bits."""
        words = [word for member, number, at in members for word in (self.name(member), number, at)]
        return self.add(kind, name, 64, *words, count=len(members))

    def bit_fields(self, name: str, *members: tuple[str, int, int, int]) -> int:
        """Members: name, type, offset in bits, number of bits."""
        words = [
            word
            for member, number, at, bits in members
            for word in (self.name(member), number, bits << 24 | at)
        ]
        return self.add(STRUCT, name, 64, *words, count=len(members), flag=KIND_FLAG)

    def function(self, name: str, *parameters: tuple[str, int], returns: int = 0) -> int:
        words = [word for one, number in parameters for word in (self.name(one), number)]
        proto = self.add(FUNC_PROTO, "", returns, *words, count=len(parameters))
        return self.add(FUNC, name, proto)

    def data(self) -> bytes:
        head = struct.pack(
            f"{self.order}HBBIIIII",
            0xEB9F,
            1,
            0,
            24,
            0,
            len(self.types),
            len(self.types),
            len(self.names),
        )
        return head + self.types + self.names


def kernel() -> SmallBtf:
    """Returns types like those of a kernel: struct file, inode, super_block, dentry, bio."""
    btf = SmallBtf()
    u8, u16, u32 = (
        btf.int("unsigned char", 1),
        btf.int("unsigned short", 2),
        btf.int("unsigned int", 4),
    )
    u64, s64, s32 = (
        btf.int("unsigned long", 8),
        btf.int("long long", 8, True),
        btf.int("int", 4, True),
    )
    dev_t, text = btf.add(TYPEDEF, "dev_t", u32), btf.pointer(btf.add(CONST, "", u8))
    kind = btf.struct("file_system_type", ("name", text, 0))
    block = btf.struct("super_block", ("s_dev", dev_t, 128), ("s_type", btf.pointer(kind), 320))
    inode = btf.struct(
        "inode", ("i_sb", btf.pointer(block), 320), ("i_ino", u64, 512), ("i_generation", u32, 1024)
    )
    hashes = btf.struct("", ("hash", u32, 0), ("len", u32, 32))
    both = btf.struct("", ("", hashes, 0), ("hash_len", u64, 0), kind=UNION)
    qstr = btf.struct("qstr", ("", both, 0), ("name", text, 64))
    # A struct that points to itself: the next type but one.
    dentry = btf.next + 1
    to_dentry = btf.pointer(dentry)
    btf.struct("dentry", ("d_parent", to_dentry, 192), ("d_name", qstr, 256))
    path = btf.struct("path", ("mnt", u64, 0), ("dentry", to_dentry, 64))
    file = btf.struct("file", ("f_path", path, 512), ("f_inode", btf.pointer(inode), 256))
    loff_t = btf.add(TYPEDEF, "loff_t", s64)
    sync = (("filp", btf.pointer(file)), ("start", loff_t), ("end", loff_t), ("datasync", s32))
    for name in ("ext4_sync_file", "vfs_fsync_range"):
        btf.function(name, *sync, returns=s32)
    device = btf.struct("block_device", ("bd_dev", dev_t, 416))
    iterator = btf.struct("bvec_iter", ("bi_sector", u64, 0), ("bi_size", u32, 64))
    flags = btf.bit_fields("flags", ("low", u32, 0, 3), ("high", u32, 35, 2))
    array = btf.add(ARRAY, "", 0, u8, u32, 16)
    bio = btf.struct(
        "bio",
        ("bi_bdev", btf.pointer(device), 64),
        ("bi_opf", u32, 128),
        ("bi_flags", u16, 160),
        ("bi_status", u8, 192),
        ("bi_iter", iterator, 256),
        ("bi_end_io", btf.pointer(0), 448),
        ("bi_private", btf.pointer(0), 576),
        ("bits", flags, 512),
        ("text", array, 640),
    )  # fmt: skip
    for name in ("submit_bio", "bio_endio"):
        btf.function(name, ("bio", btf.pointer(bio)))
    return btf
