# SPDX-License-Identifier: Apache-2.0
"""Boots Debian's kernel under QEMU with PCIe trees and NUMA nodes of our making and lets the program look at them.

  vm.py PROGRAM WORK [--keep]

The guest has nothing but busybox, the program with its shared libraries, and a script of init; it answers over a second
serial port. Software emulation, no KVM, no root: 10 to 60 s. WORK keeps the kernel. Status 77 (skipped) where QEMU, busybox
or the kernel package is missing.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
BOOT_S = 300


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def kernel_in(work):
    """The newest kernel image of Debian's package, fetched once. Nothing is installed."""
    found = sorted(work.glob("kernel/boot/vmlinuz-*"))
    if found:
        return found[-1]
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        skip("no kernel in " + str(work) + ", and no apt-get to fetch one")
    depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=False)
    named = re.search(r"Depends: (linux-image-\S+)", depends.stdout)
    if not named:
        skip("apt knows no package linux-image-amd64")
    with tempfile.TemporaryDirectory(dir=work) as folder:
        subprocess.run(["apt-get", "download", named.group(1)], cwd=folder, capture_output=True, check=False)
        packages = list(pathlib.Path(folder).glob("*.deb"))
        if not packages:
            skip(f"{named.group(1)} could not be fetched")
        subprocess.run(["dpkg", "-x", str(packages[0]), str(work / "kernel")], check=True)
    return sorted(work.glob("kernel/boot/vmlinuz-*"))[-1]


def libraries_of(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"(/\S+)\s+\(0x", listed)))


def archive(files):
    """A cpio archive (newc) of {path: bytes or None for a folder, or a text for a symbolic link}."""
    out = bytearray()

    def entry(name, mode, data):
        out.extend(b"070701")
        for number in (entry.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0):
            out.extend(b"%08X" % number)
        entry.inode += 1
        out.extend(name.encode() + b"\0")
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    entry.inode = 1
    folders = set()
    for path in files:
        parts = pathlib.PurePosixPath(path).parts
        folders.update("/".join(parts[:n]) for n in range(1, len(parts)))
    for folder in sorted(folders | {p for p, c in files.items() if c is None}):
        entry(folder, 0o040755, b"")
    for path, content in files.items():
        if isinstance(content, str):
            entry(path, 0o120777, content.encode())
        elif content is not None:
            entry(path, 0o100755, content)
    entry("TRAILER!!!", 0, b"")
    return bytes(out)


def image(program, busybox, script, to):
    files = {"init": script.encode(), "bin/busybox": pathlib.Path(busybox).read_bytes(), "bin/sh": "busybox",
             "bin/topocoll": pathlib.Path(program).read_bytes(), "proc": None, "sys": None, "dev": None, "tmp": None}
    for library in libraries_of(program):
        files[library.lstrip("/")] = pathlib.Path(os.path.realpath(library)).read_bytes()
    to.write_bytes(gzip.compress(archive(files), 1))


# Each command answers between two marks. The console stays apart, so that the kernel's messages cannot mix in.
INIT = """#!/bin/sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1
{commands}
/bin/busybox poweroff -f
"""


def boot(work, program, commands, devices, memory="1024"):
    """Runs commands in a guest with these devices; gives what each printed."""
    qemu, busybox = shutil.which("qemu-system-x86_64"), shutil.which("busybox")
    if not qemu:
        skip("no qemu-system-x86_64; on Debian: apt-get install qemu-system-x86")
    if not busybox:
        skip("no busybox; on Debian: apt-get install busybox-static")
    kernel = kernel_in(work)
    marked = "\n".join(f"echo '<<<{i}'; {c}; echo; echo '{i}>>>'" for i, c in enumerate(commands))
    with tempfile.TemporaryDirectory(dir=work) as folder:
        disk, answer = pathlib.Path(folder, "image"), pathlib.Path(folder, "answer")
        image(program, busybox, INIT.format(commands=marked), disk)
        run = subprocess.run(
            [qemu, "-accel", "tcg", "-M", "q35", "-cpu", "max", "-m", memory, "-nographic", "-no-reboot", "-net", "none",
             "-kernel", str(kernel), "-initrd", str(disk), "-append", "console=ttyS0 quiet panic=-1",
             "-serial", "mon:stdio", "-serial", f"file:{answer}"] + devices,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=BOOT_S, check=False)
        text = answer.read_text(encoding="utf-8", errors="replace").replace("\r", "") if answer.exists() else ""
    told = []
    for i in range(len(commands)):
        m = re.search(rf"^<<<{i}\n(.*?)\n{i}>>>$", text, re.M | re.S)
        if not m:
            sys.exit(f"the guest did not answer command {i} ({commands[i]}); QEMU ended with {run.returncode}\n"
                     f"console: {run.stdout[-2000:]}\nanswer so far: {text[-2000:]}\n{run.stderr[-2000:]}")
        told.append(m.group(1))
    return told


class claims:
    """Counts what does not hold, and says all of it."""

    def __init__(self):
        self.failed = 0
        self.made = 0

    def that(self, holds, what, seen=""):
        self.made += 1
        if not holds:
            self.failed += 1
            print(f"DOES NOT HOLD: {what}; seen: {seen}")


NUMA = ["-smp", "2", "-object", "memory-backend-ram,id=m0,size=512M", "-object", "memory-backend-ram,id=m1,size=512M",
        "-numa", "node,nodeid=0,memdev=m0,cpus=0", "-numa", "node,nodeid=1,memdev=m1,cpus=1", "-numa", "dist,src=0,dst=1,val=21"]


def two_sockets(work, program, check):
    """A switch with two adapters at one socket, one adapter at the other, root ports that could do more than they do."""
    devices = NUMA + [
        "-device", "pcie-root-port,id=rp1,slot=1,chassis=1,bus=pcie.0,x-speed=16,x-width=16",
        "-device", "x3130-upstream,id=up1,bus=rp1",
        "-device", "xio3130-downstream,id=d1,bus=up1,chassis=2,slot=2", "-device", "virtio-net-pci,bus=d1",
        "-device", "xio3130-downstream,id=d2,bus=up1,chassis=3,slot=3", "-device", "virtio-net-pci,bus=d2",
        "-device", "pxb-pcie,id=px1,bus_nr=64,numa_node=1,bus=pcie.0",
        "-device", "pcie-root-port,id=rp2,slot=4,chassis=4,bus=px1,x-speed=16,x-width=8",
        "-device", "virtio-net-pci,bus=rp2"]
    told, tree, paths = boot(work, program, ["topocoll topo --json", "topocoll topo --all", "topocoll topo --paths"], devices)
    graph = json.loads(told)
    nodes = {n["key"].split("/", 1)[-1]: n for n in graph["nodes"]}
    links = graph["links"]
    of = lambda kind: [n for n in graph["nodes"] if n["kind"] == kind]
    summary = graph["summary"]

    check.that(summary["numa_domains"] == 2, "two NUMA domains are seen", summary)
    check.that(summary["nics"] == 3, "three network adapters are seen", summary)
    check.that(summary["pcie_switches"] == 1, "the switch's up and down ports are one switch", summary)
    check.that(summary["gpus"] == 0, "there is no GPU", summary)
    nics = sorted(of("nic"), key=lambda n: n["key"])
    facts = [n.get("facts", {}) for n in nics]
    # The first two stand below a bus without a domain (-1), the third below an expander that says 1.
    check.that([n.get("numa") for n in nics] == [None, None, 1],
               "the adapter below the expander is in domain 1, what the others' bus does not tell stays unknown",
               [(n["key"], n.get("numa"), n.get("trust")) for n in nics])
    switch = of("pcie_switch")[0].get("facts", {})
    check.that(switch.get("port_pcie_max") == "Gen4 x16" and switch.get("pcie_max") == "Gen1 x1",
               "both ends of the switch's uplink tell what they can do", switch)
    check.that(facts[2].get("port_pcie_max") == "Gen4 x8" and facts[2].get("root_port", "").startswith("0000:40:"),
               "the port above the third adapter could do Gen4 x8", facts[2])
    check.that("root_port_acs" in switch, "as root the access control of the port above is read", switch)
    low = [l for l in links if l["kind"] == "pcie" and l.get("current_bytes_per_second", 1e12) < 0.3e9]
    check.that(len(low) == 4, "all four cables show that they trained to 2.5 GT/s x1", low)
    check.that(all(l["trust"] == "assumed" and l["capacity_bytes_per_second"] > 1e9 for l in low),
               "an emulator's figures are kept, marked, and replaced in the model", low)
    text = json.dumps(graph.get("findings", []))
    for words in ("port above can do more", "emulated device", "bridge speed not trusted", "tells its NUMA domain"):
        check.that(words in text, f"a finding says '{words}'", text)
    distances = [l for l in links if l["kind"] == "cpu"]
    check.that(len(distances) >= 1, "the two domains are joined", distances)
    check.that("NUMA" in tree or "numa" in tree, "the tree shows the domains", tree[:400])
    check.that("PIX" in paths and "SYS" in paths, "below one switch is PIX, between the domains SYS", paths[:1200])
    return nodes


def main():
    program, work = sys.argv[1], pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    check = claims()
    two_sockets(work, program, check)
    print(f"vm: {check.made} claims, {check.failed} that do not hold")
    sys.exit(1 if check.failed else 0)


main()
