#!/usr/bin/env python3
"""Boots a kernel in QEMU, runs one job script in it and returns its exit code and files.

tests/kernel/guest.py prepare
tests/kernel/guest.py boot --job tests/kernel/jobs/hello.sh --out /tmp/out
tests/kernel/guest.py shell
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
CACHE = Path(os.environ.get("SYNCLINE_CACHE") or Path.home() / ".cache/syncline") / "guest"

SUITE = "trixie"
# The default series of kernel-patch/build.sh.
SERIES = "6.12"
# Other versions of bpftrace that distributions ship, on which recorder scripts are tested.
OTHER_BPFTRACE = {"bpftrace-0.17": "bookworm", "bpftrace-0.27": "sid"}
# Kernels of other suites of Debian, on which recorders are tested: the newest of each.
OTHER_KERNELS = {"debian-12": "bookworm", "debian-sid": "sid"}
# Debian's kernel for arm64, with a root of its own.
ARM64 = "debian-arm64"
ARM64_TARGET = "aarch64-unknown-linux-gnu"
ARM64_PACKAGES = [
    "btrfs-progs", "busybox-static", "e2fsprogs", "f2fs-tools", "iproute2", "kmod", "procps", "python3", "strace",
    "trace-cmd", "xfsprogs",
]  # fmt: skip
# Increment this when `prepare` changes in a way that the package list does not show.
RECIPE = 1
ROOT_SIZE = "6G"

# Modules of Debian's kernel that the initramfs needs to mount the root and the shares.
INITRAMFS_MODULES = ["virtio_pci", "virtio_blk", "ext4", "9pnet_virtio", "9p"]

TOOLS = {
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "dpkg-deb": "dpkg",
    "depmod": "kmod",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-system-aarch64": "qemu-system-arm",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
}
PREPARE_TOOLS = ["debootstrap", "mke2fs", "dpkg-deb", "depmod"]

# A change here needs a new image, so it is small. guest-init.sh, which is read from the checkout, does the rest.
STUB_INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mkdir -p /project /out
share=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "ro,$share" project /project
mount -t 9p -o "rw,$share" out /out
exec /bin/bash /project/tests/kernel/guest-init.sh
"""

INITRAMFS_INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in $(/bin/busybox cat /modules); do /bin/busybox insmod "/lib/$module"; done
tries=0
until [ -b /dev/vda ] || [ $tries = 100 ]; do /bin/busybox sleep 0.1; tries=$((tries + 1)); done
/bin/busybox mount -t ext4 /dev/vda /root
/bin/busybox mount -o move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/syncline-init
"""

MOUNT_MODULES = """until [ -b /dev/vdd ] || [ $tries = 100 ]; do /bin/busybox sleep 0.1; tries=$((tries + 1)); done
/bin/busybox mount -t ext4 -o ro /dev/vdd /root/usr/lib/modules
"""

RUN_OTHER_BPFTRACE = """#!/bin/sh
# Its own loader and libraries, so that it runs in any root; programs that it starts with -c get the guest's.
here=$(dirname "$(readlink -f "$0")")
exec "$here/lib/ld.so" --inhibit-cache --library-path "$here/lib" "$here/bpftrace" "$@"
"""


class Missing(Exception):
    """A requirement is missing. The text says how to get it."""


def say(text: str) -> None:
    print(f"guest: {text}", file=sys.stderr, flush=True)


def run(command: list[str], **more: object) -> str:
    """Runs a command and returns its output. If it fails, the exception holds the last lines."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more
    )  # type: ignore[call-overload]
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}:\n{tail}")
    return str(done.stdout)


def find(tool: str) -> str | None:
    # mke2fs and debootstrap are in sbin, which may not be on the PATH of a user.
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def need_tools(tools: list[str]) -> None:
    """Installs missing tools if this is root on a system with apt; otherwise says what to install."""
    packages = sorted({TOOLS[tool] for tool in tools if not find(tool)})
    if not packages:
        return
    if os.geteuid() == 0 and find("apt-get"):
        say(f"apt-get installs {' '.join(packages)} (you are root), which the guest needs")
        apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        try:
            run([*apt, "update"], env=env)
            run([*apt, "install", "-y", "--no-install-recommends", *packages], env=env)
        except RuntimeError as error:
            say(str(error))
    packages = sorted({TOOLS[tool] for tool in tools if not find(tool)})
    if packages:
        raise Missing(
            f"no {', '.join(packages)}; get it with: apt-get install {' '.join(packages)}"
        )


def package_list() -> list[str]:
    lines = (HERE / "packages.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def image_key() -> str:
    """Returns a hash of everything that the cached image depends on."""
    parts = [RECIPE, SUITE, ROOT_SIZE, package_list(), OTHER_BPFTRACE, INITRAMFS_MODULES]
    parts += [STUB_INIT, INITRAMFS_INIT, RUN_OTHER_BPFTRACE]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


# --- prepare -------------------------------------------------------------------------------------


def mirror() -> str | None:
    """Returns the Debian mirror that SYNCLINE_MIRROR names, or else the first one that apt of this system uses."""
    if named := os.environ.get("SYNCLINE_MIRROR"):
        return named
    if not find("apt-get"):
        return None
    wanted = ["--format", "$(SITE)", "Created-By: Packages", "Label: Debian"]
    return next(iter(run(["apt-get", "indextargets", *wanted]).split()), None)


def debootstrap(suite: str, target: Path, *more: str) -> None:
    debs = CACHE / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    command = [
        find("debootstrap") or "debootstrap",
        "--variant=minbase",
        f"--cache-dir={debs}",
        *more,
    ]
    # debootstrap has a mirror of its own, so it also works on systems that are not Debian.
    named = mirror()
    run([*command, suite, str(target), *([named] if named else [])])


def in_root(root: Path, script: str) -> str:
    """Runs a shell script in the root of the guest. Its mounts are removed afterwards."""
    enter = 'mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot "$1" /bin/sh -euc "$2"'
    env = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive",
        "LC_ALL": "C.UTF-8",
        "HOME": "/root",
    }
    return run(["unshare", "--mount", "sh", "-c", enter, "sh", str(root), script], env=env)


def make_root(root: Path, work: Path) -> str:
    """Creates the root of the guest and puts the kernel into `work`. Returns the kernel version."""
    say(f"debootstrap {SUITE}")
    debootstrap(SUITE, root)
    # Installing must not start services or create a database cluster.
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    cluster = root / "etc/postgresql-common/createcluster.conf"
    cluster.parent.mkdir(parents=True)
    cluster.write_text("create_main_cluster = false\n")
    say(f"installing {len(package_list())} packages and their dependencies in it")
    in_root(
        root,
        f"""
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends {" ".join(package_list())}
        cd /tmp
        apt-get download -qq "$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -n 1)"
        apt-get clean
        rm -rf /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
    """,
    )
    policy.unlink()
    (deb,) = (root / "tmp").glob("linux-image-*.deb")
    say(f"unpacking {deb.name}")
    version = unpack_kernel([deb], work, root)
    add_init(root)
    return version


def add_init(root: Path) -> None:
    """Adds what the root needs to boot without an init system."""
    stub = root / "sbin/syncline-init"
    stub.write_text(STUB_INIT)
    stub.chmod(0o755)
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost guest\n")


def make_image(folder: Path, image: Path, size: str) -> None:
    """Creates an ext4 image with the content of a folder."""
    mke2fs = find("mke2fs") or "mke2fs"
    run([mke2fs, "-q", "-t", "ext4", "-d", str(folder), str(image), size])


def make_other_bpftrace(root: Path, name: str, suite: str, work: Path) -> None:
    """Unpacks the bpftrace of another suite with the libraries that it loads."""
    say(f"{name} from {suite}")
    unpacked = work / name
    debs = work / f"{name}-debs"
    debootstrap(suite, debs, "--include=bpftrace", "--download-only")
    for deb in sorted((debs / "var/cache/apt/archives").glob("*.deb")):
        run(["dpkg-deb", "-x", str(deb), str(unpacked)])
    shutil.rmtree(debs)
    folders = [unpacked / f for f in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
    path = ":".join(str(folder) for folder in folders)
    loader = next(
        p
        for f in (*folders, unpacked / "lib64", unpacked / "usr/lib64")
        for p in f.glob("ld-linux-x86-64.so.2")
    )
    binary = unpacked / "usr/bin/bpftrace"
    # Some libraries are in folders of their own. The loader finds them by links.
    listed = run(
        [str(loader.resolve()), "--inhibit-cache", "--library-path", path, "--list", str(binary)]
    )
    target = root / "opt" / name
    (target / "lib").mkdir(parents=True)
    for line in listed.splitlines():
        if "not found" in line:
            raise RuntimeError(f"{name}: {line.strip()}")
        if found := re.match(r"\s*(\S+) => (/\S+) ", line):
            shutil.copy(found[2], target / "lib" / Path(found[1]).name)
    shutil.copy(loader.resolve(), target / "lib/ld.so")
    shutil.copy(binary, target / "bpftrace")
    start = target / "run"
    start.write_text(RUN_OTHER_BPFTRACE)
    start.chmod(0o755)
    shutil.rmtree(unpacked)


def cpio(files: list[tuple[str, int, bytes]]) -> bytes:
    """Returns an archive in the `newc` format of the kernel. Modes are as in stat."""
    out = bytearray()
    for number, (name, mode, content) in enumerate([*files, ("TRAILER!!!", 0, b"")], 1):
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4)
        out += content + b"\0" * (-len(content) % 4)
    return bytes(out)


def make_initramfs(root: Path, version: str, busybox: bytes, with_modules: bool = False) -> bytes:
    """Returns an initramfs with busybox and the modules for the root file system, in load order.

    `with_modules`: the other modules are on a disk of their own, which is mounted over those of the root.
    """
    folder = root / "usr/lib/modules" / version
    needs: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, after = line.partition(":")
        name = Path(path).name.split(".")[0].replace("-", "_")
        paths[name] = path
        needs[name] = [Path(each).name.split(".")[0].replace("-", "_") for each in after.split()]
    order: list[str] = []

    def add(name: str) -> None:
        # ext4 requests its checksum module by name at mount, so modules.dep does not list it.
        for each in needs[name]:
            add(each)
        if name not in order:
            order.append(name)

    for name in [*INITRAMFS_MODULES, "crc32c_generic"]:
        if name in needs:
            add(name)
    files = [(name, 0o040755, b"") for name in ("bin", "lib", "dev", "root", "proc")]
    for name in order:
        raw = (folder / paths[name]).read_bytes()
        files.append(
            (
                f"lib/{name}.ko",
                0o100644,
                lzma.decompress(raw) if paths[name].endswith(".xz") else raw,
            )
        )
    files.append(("bin/busybox", 0o100755, busybox))
    files.append(("modules", 0o100644, "".join(f"{name}.ko\n" for name in order).encode()))
    init = INITRAMFS_INIT
    if with_modules:
        init = init.replace(
            "/bin/busybox mount -o move", f"{MOUNT_MODULES}/bin/busybox mount -o move"
        )
    files.append(("init", 0o100755, init.encode()))
    return cpio(files)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds a lock file, so that only one process prepares at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prepare(again: bool = False) -> Path:
    """Returns the folder with root image, kernel and initramfs. The first call creates it."""
    ready = CACHE / image_key()
    with locked("lock"):
        if ready.is_dir() and not again:
            return ready
        if os.geteuid() != 0:
            raise Missing(
                "there is no guest image, and only root can create it: sudo tests/kernel/guest.py prepare"
            )
        need_tools(PREPARE_TOOLS)
        begun = time.monotonic()
        CACHE.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="making-", dir=CACHE))
        root = work / "root"
        try:
            version = make_root(root, work)
            for name, suite in OTHER_BPFTRACE.items():
                make_other_bpftrace(root, name, suite, work)
            busybox = (root / "usr/bin/busybox").read_bytes()
            (work / "initramfs").write_bytes(make_initramfs(root, version, busybox))
            (work / "version").write_text(version + "\n")
            say("creating the root image")
            make_image(root, work / "root.img", ROOT_SIZE)
            shutil.rmtree(root)
            if ready.exists():
                shutil.rmtree(ready)
            work.chmod(0o755)
            work.rename(ready)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        say(f"prepared in {time.monotonic() - begun:.0f} s: {ready}")
    return ready


def other_kernel(name: str) -> Path:
    """Returns the folder with kernel, initramfs and an image of modules of another Debian suite."""
    suite = OTHER_KERNELS[name]
    folder = CACHE / name
    with locked(f"{name}.lock"):
        if (folder / "version").exists():
            return folder
        need_tools(["mke2fs", "dpkg-deb", "depmod"])
        work = Path(tempfile.mkdtemp(prefix="making-", dir=CACHE))
        try:
            debs = download_kernel(suite, work)
            say(f"unpacking {', '.join(deb.name for deb in debs)}")
            version = unpack_kernel(debs, work, work / "modules")
            (work / "initramfs").write_bytes(
                make_initramfs(work / "modules", version, guest_busybox(), with_modules=True)
            )
            make_image(work / "modules/usr/lib/modules", work / "modules.img", "1G")
            (work / "version").write_text(version + "\n")
            shutil.rmtree(work / "modules")
            shutil.rmtree(folder, ignore_errors=True)
            work.chmod(0o755)
            work.rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return folder


def arm64() -> Path:
    """Returns the folder with root image, kernel and initramfs of Debian for arm64.

    Its programs do not run here, so the packages are unpacked and not configured.
    """
    folder = CACHE / ARM64
    with locked(f"{ARM64}.lock"):
        if (folder / "version").exists():
            return folder
        need_tools(PREPARE_TOOLS)
        work = Path(tempfile.mkdtemp(prefix="making-", dir=CACHE))
        root = work / "root"
        try:
            say(f"debootstrap {SUITE} for arm64")
            include = f"--include={','.join(ARM64_PACKAGES)}"
            debootstrap(SUITE, work / "debs", "--arch=arm64", include, "--download-only")
            # base-files has the links of the folders, such as /bin.
            debs = sorted((work / "debs/var/cache/apt/archives").glob("*.deb"))
            for deb in sorted(debs, key=lambda deb: not deb.name.startswith("base-files_")):
                run(["dpkg-deb", "-x", str(deb), str(root)])
            shutil.rmtree(work / "debs")
            (root / "usr/bin/awk").symlink_to("mawk")
            for name in ("passwd", "group"):
                shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
            version = unpack_kernel(download_kernel(SUITE, work, "arm64"), work, root)
            add_init(root)
            busybox = (root / "usr/bin/busybox").read_bytes()
            (work / "initramfs").write_bytes(make_initramfs(root, version, busybox))
            (work / "version").write_text(version + "\n")
            make_image(root, work / "root.img", "2G")
            shutil.rmtree(root)
            shutil.rmtree(folder, ignore_errors=True)
            work.chmod(0o755)
            work.rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return folder


def arm64_core() -> Path:
    """Returns the core for arm64, which the guest uses instead of that in the checkout: SYNCLINE_ARM64_CORE, or a new build."""
    if named := os.environ.get("SYNCLINE_ARM64_CORE"):
        return Path(named)
    need_tools(["aarch64-linux-gnu-gcc"])
    environment = {"CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc"}
    libraries = Path(run(["rustc", "--print", "target-libdir", "--target", ARM64_TARGET]).strip())
    if not libraries.is_dir():
        raise Missing(f"no Rust for arm64; get it with: rustup target add {ARM64_TARGET}")
    say("building the core for arm64")
    command = ["cargo", "build", "--release", "-p", "syncline-binding", "--target", ARM64_TARGET]
    run(command, cwd=PROJECT / "converter", env=os.environ | environment)
    return PROJECT / f"converter/target/{ARM64_TARGET}/release/lib_core.so"


def download_kernel(suite: str, work: Path, architecture: str = "amd64") -> list[Path]:
    """Downloads the kernel packages of a suite with an apt that knows only this suite."""
    site = mirror()
    if site is None:
        raise Missing(
            "apt of this system knows no Debian mirror; set SYNCLINE_MIRROR to the URL of one"
        )
    say(f"downloading the kernel of {suite}")
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (work / "apt" / name).mkdir(parents=True)
    (work / "apt/status").touch()
    # The keys of Debian are those of the system that runs this.
    (work / "apt/sources").write_text(f"deb {site} {suite} main\n")
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "Dir::State": work / "apt",
        "Dir::State::status": work / "apt/status",
        "Dir::Cache": work / "apt/cache",
        "Dir::Etc::sourcelist": work / "apt/sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Sandbox::User": "",
    }
    apt = [f"-o={key}={value}" for key, value in options.items()]
    run(["apt-get", *apt, "-qq", "update"])
    depends = run(["apt-cache", *apt, "depends", f"linux-image-{architecture}"])
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if package is None:
        raise RuntimeError(f"{suite} has no kernel: {depends}")
    # Newer kernels consist of several packages.
    more = run(["apt-cache", *apt, "depends", package[1]])
    parts = re.findall(r"Depends: (linux-(?:base|binary|modules)-\d\S+)", more)
    run(["apt-get", *apt, "-qq", "download", package[1], *parts], cwd=work)
    shutil.rmtree(work / "apt")
    return sorted(work.glob("*.deb"))


def unpack_kernel(debs: list[Path], work: Path, root: Path) -> str:
    """Puts kernel and configuration into `work`, and the modules into `root`. Returns the version."""
    unpacked = work / "kernel"
    for deb in debs:
        run(["dpkg-deb", "-x", str(deb), str(unpacked)])
        deb.unlink()
    kernels = [*unpacked.glob("boot/vmlinuz-*"), *unpacked.glob("usr/lib/modules/*/vmlinuz")]
    kernel = kernels[0]
    version = kernel.name.removeprefix("vmlinuz-") if "-" in kernel.name else kernel.parent.name
    shutil.move(kernel, work / "vmlinuz")
    for config in unpacked.glob("boot/config-*"):
        shutil.move(config, work / "config")
    modules = next(
        path for path in (unpacked / "usr/lib/modules", unpacked / "lib/modules") if path.is_dir()
    )
    (root / "usr/lib/modules").mkdir(parents=True, exist_ok=True)
    if not (root / "lib").exists():
        (root / "lib").symlink_to("usr/lib")
    shutil.move(modules / version, root / "usr/lib/modules" / version)
    run([find("depmod") or "depmod", "-b", str(root), version])
    shutil.rmtree(unpacked)
    return version


def guest_busybox() -> bytes:
    """Returns busybox of the guest, from its initramfs."""
    data = (prepare() / "initramfs").read_bytes()
    at = 0
    while True:
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        name = data[at + 110 : at + 109 + fields[11]].decode()
        start = at + 110 + fields[11]
        start += -start % 4
        if name == "bin/busybox":
            return data[start : start + fields[6]]
        at = start + fields[6] + -fields[6] % 4


# --- boot ----------------------------------------------------------------------------------------


def patched_kernel(series: str = SERIES) -> Path | None:
    """Returns the patched kernel that kernel-patch/build.sh has built; None without one."""
    if named := os.environ.get("SYNCLINE_BZIMAGE"):
        return Path(named)
    named = os.environ.get("SYNCLINE_KERNEL_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "syncline/kernel"
    folder = Path(named) if named else cache / series
    # The build creates `built` when it is complete.
    return folder / "build/arch/x86/boot/bzImage" if (folder / "built").exists() else None


def sparse(path: Path, size: str) -> Path:
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    amount, unit = re.fullmatch(r"(\d+)([kmg]?)", size.lower()).groups()  # type: ignore[union-attr]
    with path.open("wb") as file:
        file.truncate(int(amount) * units.get(unit, 1))
    return path


def emulator(kernel: str) -> str:
    return "qemu-system-aarch64" if kernel == ARM64 else "qemu-system-x86_64"


def qemu(guest: Path, args: argparse.Namespace, out: Path, disks: Path) -> list[str]:
    is_arm64 = args.kernel == ARM64
    # A CPU without pointer authentication, which is slow to emulate.
    machine, cpu, console = (
        ("virt", "cortex-a72", "ttyAMA0") if is_arm64 else ("q35", "max", "ttyS0")
    )
    command = [
        emulator(args.kernel), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        # With thread=multi and two CPUs the guest panics while fentry probes are attached.
        "-machine", machine, "-accel", args.accel, "-cpu", cpu, "-smp", str(args.cpus), "-m", args.memory,
        "-drive", f"file={guest / 'root.img'},format=raw,if=none,id=root,snapshot=on,cache=unsafe",
        "-device", "virtio-blk-pci,drive=root",
    ]  # fmt: skip
    for name, size in (("data", args.disk_size), ("spare", args.spare_size)):
        disk = sparse(disks / name, size)
        command += [
            "-drive",
            f"file={disk},format=raw,if=none,id={name},cache={args.disk_cache},discard=unmap",
        ]
        command += ["-device", f"virtio-blk-pci,drive={name},serial={name}"]
    for tag, path, flags in (("project", PROJECT, ",readonly=on"), ("out", out, "")):
        command += [
            "-virtfs",
            f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap{flags}",
        ]
    if args.ssh_port:
        forward = f"hostfwd=tcp:127.0.0.1:{args.ssh_port}-:22"
        command += ["-netdev", f"user,id=net,restrict=on,{forward}"]
        command += ["-device", "virtio-net-pci,netdev=net"]
    # no_timer_check: on a busy host the timer check at boot fails, and the kernel panics.
    append = f"console={console} root=/dev/vda rw init=/sbin/syncline-init panic=-1 no_timer_check net.ifnames=0"
    append += f" {args.append}"
    if args.kernel in OTHER_KERNELS:
        other = other_kernel(args.kernel)
        kernel = other / "vmlinuz"
        modules = other / "modules.img"
        command += ["-drive", f"file={modules},format=raw,if=none,id=modules,readonly=on"]
        command += ["-device", "virtio-blk-pci,drive=modules"]
        command += ["-initrd", str(other / "initramfs")]
    elif args.kernel in ("stock", ARM64):
        kernel = guest / "vmlinuz"
        command += ["-initrd", str(guest / "initramfs")]
    else:
        kernel = Path(args.kernel)
    command += ["-kernel", str(kernel), "-append", append]
    return command + (
        ["-serial", "mon:stdio"]
        if args.command == "shell"
        else ["-serial", f"file:{out / 'console.log'}"]
    )


class Follow:
    """Prints what the guest appends to a file."""

    def __init__(self, path: Path, quiet: bool) -> None:
        self.path, self.quiet, self.at = path, quiet, 0

    def step(self) -> None:
        if self.quiet or not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.at)
            new = file.read()
        self.at += len(new)
        sys.stdout.buffer.write(new)
        sys.stdout.buffer.flush()


def boot(args: argparse.Namespace) -> int:
    """Runs one guest. Returns the exit code of the job, 124 after the time limit, 125 if the guest died."""
    if re.fullmatch(r"patched(-[0-9.]+)?", args.kernel):
        series = args.kernel.partition("-")[2] or SERIES
        kernel = patched_kernel(series)
        if not kernel:
            raise Missing(
                f"no patched kernel; build it with kernel-patch/build.sh --series {series}, or name one in SYNCLINE_BZIMAGE"
            )
        args.kernel = str(kernel)
    if args.kernel not in ("stock", ARM64, *OTHER_KERNELS) and not Path(args.kernel).is_file():
        raise Missing(f"no kernel {args.kernel}")
    need_tools([emulator(args.kernel)])
    guest = arm64() if args.kernel == ARM64 else prepare()
    out = Path(args.out).resolve()
    control = out / ".guest"
    shutil.rmtree(control, ignore_errors=True)
    control.mkdir(parents=True)
    if args.kernel == ARM64:
        shutil.copy(arm64_core(), control / "_core.abi3.so")
    job_log = out / "job.log"
    job_log.unlink(missing_ok=True)
    if args.job:
        shutil.copy(args.job, control / "job")
    settings = {
        "SETUP": args.fs,
        "MKFS_OPTS": args.mkfs_opts,
        "MOUNT_OPTS": args.mount_opts,
        "DEVICE": args.device,
        "JOB_ARGS": shlex.join(args.job_args),
        "SHELL_WANTED": "1" if args.command == "shell" else "",
    }
    (control / "settings").write_text(
        "".join(f"{k}={shlex.quote(v)}\n" for k, v in settings.items())
    )
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(
        prefix="syncline-guest-", dir=os.environ.get("TMPDIR", "/var/tmp")
    ) as disks:
        command = qemu(guest, args, out, Path(disks))
        # The snapshot of the root is in the folder of the data disks and is removed with it.
        env = os.environ | {"TMPDIR": disks}
        if args.command == "shell":
            return subprocess.run(command, env=env).returncode
        follow = Follow(job_log, args.quiet)
        timed_out = False
        with subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, start_new_session=True
        ) as machine:
            try:
                while machine.poll() is None:
                    follow.step()
                    if time.monotonic() - begun > args.time_limit:
                        timed_out = True
                        break
                    time.sleep(0.2)
            finally:
                if machine.poll() is None:
                    machine.send_signal(signal.SIGKILL)
        follow.step()
    code_file = control / "exit"
    took = f"after {time.monotonic() - begun:.0f} s"
    if not timed_out and code_file.exists():
        code = int(code_file.read_text())
        say(f"the job exited with {code} {took}; results in {out}")
        return code
    say(
        f"the time limit of {args.time_limit:g} s has passed"
        if timed_out
        else f"the guest died {took}, before the end of the job"
    )
    console = (
        (out / "console.log").read_text(errors="replace") if (out / "console.log").exists() else ""
    )
    for line in console.splitlines()[-25:]:
        say(f"console: {line}")
    return 124 if timed_out else 125


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser(
        "prepare", help="create root, kernel and initramfs of the guest in the cache"
    )
    one.add_argument(
        "--again", action="store_true", help="create them again if they are in the cache"
    )
    commands.add_parser("info", help="list what is in the cache, and the kernels")
    for name, text in (
        ("boot", "run one job in a fresh guest"),
        ("shell", "open a shell in a fresh guest, on this terminal"),
    ):
        one = commands.add_parser(name, help=text)
        one.add_argument(
            "--kernel",
            default="stock",
            help=f"stock; {', '.join([*OTHER_KERNELS, ARM64])}; patched ({SERIES}) or patched-SERIES; or a bzImage with everything built in",
        )
        one.add_argument(
            "--fs", default="ext4", help="a row of filesystems.tsv, or none (default: ext4)"
        )
        one.add_argument(
            "--device",
            default="plain",
            help="a row of devices.tsv: the device under the file system (default: plain)",
        )
        one.add_argument("--mkfs-opts", default="", help="more options for mkfs")
        one.add_argument("--mount-opts", default="", help="more options for mount")
        one.add_argument("--disk-size", default="1G")
        one.add_argument(
            "--spare-size",
            default="1G",
            help="size of the second disk, for device mapper and others",
        )
        one.add_argument(
            "--disk-cache",
            default="writeback",
            help="cache mode of the disks in QEMU; unsafe: flushes cost nothing",
        )
        one.add_argument("--memory", default="2G")
        one.add_argument("--cpus", type=int, default=2)
        one.add_argument(
            "--accel",
            default="tcg,thread=single",
            help="accelerator of QEMU; use kvm where it works",
        )
        one.add_argument(
            "--ssh-port",
            type=int,
            default=0,
            metavar="PORT",
            help="a network in which this port of the host leads to port 22 of the guest, and nothing else anywhere",
        )
        one.add_argument("--append", default="", help="more arguments for the kernel command line")
        one.add_argument("--out", default="", help="folder for results, /out in the guest")
        if name == "boot":
            one.add_argument("--job", required=True, help="script that the guest runs; see jobs/")
            one.add_argument("--time-limit", type=float, default=600, metavar="S")
            one.add_argument(
                "--quiet",
                action="store_true",
                help="do not print the output of the job while it runs",
            )
            one.add_argument("job_args", nargs="*", help="arguments of the job, after --")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    # So that the guest and its disks are removed when this process is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if args.command == "prepare":
            print(prepare(args.again))
            return 0
        if args.command == "info":
            ready = CACHE / image_key()
            version = (ready / "version").read_text().strip() if ready.is_dir() else ""
            print(f"guest    {ready if version else 'not prepared'}")
            print(f"stock    {version or 'not prepared'}")
            print(f"patched  {patched_kernel() or 'not built'}")
            return 0
        if args.command == "shell":
            args.job, args.job_args, args.time_limit = "", [], 0.0
            args.append += " quiet"
        if not args.out:
            args.out = tempfile.mkdtemp(prefix="syncline-out-")
        return boot(args)
    except Missing as missing:
        say(f"skipped: {missing}")
        return 77
    except RuntimeError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
