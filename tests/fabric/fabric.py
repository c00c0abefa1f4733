# SPDX-License-Identifier: Apache-2.0
"""All-reduce over a spine-leaf fabric that is made on this machine: network namespaces as hosts, leaves and a spine, links
limited by tc. Says how much of the two-level bound it reaches. Needs root, ip and tc; without them: skipped, exit code 77.

  fabric.py PROGRAM RANK                   the check of the test suite: 2 leaves with 2 hosts, 4:1, a few MiB
  fabric.py PROGRAM RANK --leaves 2 --hosts 4 --rate 1000 --oversubscription 4 --sizes 16M,64M --order scattered --calls 5
  fabric.py PROGRAM RANK --faults 3        three times each: a host's link goes down, an uplink goes down, a rank is killed,
                                           a rank is stopped, in the middle of calls; every other rank must say so in 2 s

PROGRAM is topocoll, RANK is fabric_rank. Rates are Mbit/s of a host's link. Exit code 1: a wrong result, a failure, or less
than --at-least percent of the bound.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Of 1514 bytes on the wire, 1448 are data of TCP (Ethernet without its check sequence, IPv4, TCP with timestamps).
PAYLOAD = 1448 / 1514


class Skip(Exception):
    pass


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Fabric:
    """Namespaces that are gone when the block ends."""

    def __init__(self, leaves, hosts, rate, uplink):
        self.name = f"tcf{os.getpid()}"
        self.leaves, self.hosts, self.rate, self.uplink = leaves, hosts, rate, uplink
        self.made = []

    def space(self, name):
        full = f"{self.name}-{name}"
        run("ip", "netns", "add", full)
        self.made.append(full)
        run("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def bridge(self, name):
        full = self.space(name)
        run("ip", "-n", full, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", full, "link", "set", "br0", "up")
        return full

    def limit(self, space, device, rate):
        # A burst of two segments of 64 KiB; a queue of 4 ms, at least 256 KiB.
        queue = max(int(rate * 1e6 / 8 / 250), 262144)
        run("ip", "netns", "exec", space, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{rate:g}mbit", "burst", "128kb", "limit", str(queue))

    def __enter__(self):
        try:
            spine = self.bridge("spine")
            for leaf in range(self.leaves):
                here = self.bridge(f"leaf{leaf}")
                if self.leaves > 1:
                    run("ip", "-n", here, "link", "add", "up0", "type", "veth", "peer", "name", f"leaf{leaf}", "netns", spine)
                    for space, device in ((here, "up0"), (spine, f"leaf{leaf}")):
                        run("ip", "-n", space, "link", "set", device, "master", "br0", "up")
                        self.limit(space, device, self.uplink)
                for i in range(self.hosts):
                    host = self.space(f"h{leaf}.{i}")
                    run("ip", "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"h{i}", "netns", here)
                    run("ip", "-n", here, "link", "set", f"h{i}", "master", "br0", "up")
                    run("ip", "-n", host, "addr", "add", f"{self.address(leaf, i)}/16", "dev", "eth0")
                    run("ip", "-n", host, "link", "set", "eth0", "up")
                    self.limit(host, "eth0", self.rate)
                    self.limit(here, f"h{i}", self.rate)
        except RuntimeError as e:
            self.__exit__()
            raise Skip(f"no fabric can be made here: {e}") from e
        return self

    def __exit__(self, *_):
        for space in self.made:
            for pid in run("ip", "netns", "pids", space, check=False).split():
                os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", space, check=False)

    @staticmethod
    def address(leaf, host):
        return f"10.77.{leaf}.{host + 1}"

    def crossed(self):
        """Bytes that left each leaf so far."""
        return [int(re.search(r"TX:.*\n\s*(\d+)", run("ip", "-n", f"{self.name}-leaf{leaf}", "-s", "link", "show", "up0")).group(1))
                for leaf in range(self.leaves)] if self.leaves > 1 else []


class Ranks:
    """One process per host, in the order of the ranks."""

    def __init__(self, fabric, o, place, port, plan, size, calls):
        environment = {**os.environ, "UCX_TLS": o.tls, "UCX_NET_DEVICES": "eth0"}
        self.children = []
        for r, (leaf, host) in enumerate(place):
            command = ["ip", "netns", "exec", f"{fabric.name}-h{leaf}.{host}", "unshare", "-u", "sh", "-c", 'hostname "$0"; exec "$@"', f"h{leaf}-{host}",
                       o.rank, str(r), str(len(place)), fabric.address(*place[0]), str(port), plan, str(size), str(calls)]
            self.children.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment))

    def outcomes(self, patience):
        """Status, output and complaints of each; whoever is not done after `patience` seconds is killed."""
        until, told = time.monotonic() + patience, []
        for child in self.children:
            try:
                out, err = child.communicate(timeout=max(0.01, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                out, err = child.communicate()
                err += f"no answer within {patience} s"
            told.append((child.returncode, out, err.strip()))
        return told


def last_line(text):
    return text.splitlines()[-1] if text else "no reason given"


def one_fault(fabric, o, kind, place, port):
    """Complaints about what the ranks said when `kind` happened."""
    ranks = Ranks(fabric, o, place, port, "-", 1 << 20, "faults")
    hit = len(place) - 1
    leaf, host = place[hit]
    for child in ranks.children:
        if child.stdout.readline() != "ready\n":
            return [f"{kind}: a rank did not start: {last_line(ranks.outcomes(5)[ranks.children.index(child)][2])}"]
    time.sleep(0.3)
    began, cut, silent = time.time(), {hit}, {hit}
    if kind == "link":
        run("ip", "-n", f"{fabric.name}-leaf{leaf}", "link", "set", f"h{host}", "down")
        silent = set()
    elif kind == "uplink":
        run("ip", "-n", f"{fabric.name}-leaf{leaf}", "link", "set", "up0", "down")
        cut, silent = {r for r in range(len(place)) if place[r][0] == leaf}, set()
    else:
        ranks.children[hit].send_signal(signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    told = ranks.outcomes(10) if kind != "stop" else None
    if told is None:
        others = Ranks.__new__(Ranks)
        others.children = ranks.children[:hit]
        told = others.outcomes(10) + [(None, "", "")]
        ranks.children[hit].kill()
        ranks.children[hit].communicate()
    if kind in ("link", "uplink"):
        run("ip", "-n", f"{fabric.name}-leaf{leaf}", "link", "set", f"h{host}" if kind == "link" else "up0", "up")
    wrong = []
    for r, (status, out, err) in enumerate(told):
        if r in silent:
            continue
        if status != 3 or not out:
            wrong.append(f"{kind}: rank {r} ended with {status}: {last_line(err)}")
            continue
        at, sentence = out.splitlines()[-1].split(" ", 1)
        late = float(at) - began
        # Who is on the other side of what is broken.
        blamed = cut if r not in cut else set(range(len(place))) - cut
        named = {int(n) for n in re.findall(r"\branks? (\d+)", sentence)} | {int(n) for part in re.findall(r"ranks ([\d, and]+)", sentence) for n in re.findall(r"\d+", part)}
        if late > o.within:
            wrong.append(f"{kind}: rank {r} said so only after {late:.1f} s: {sentence}")
        elif not named & blamed:
            wrong.append(f"{kind}: rank {r} does not name {sorted(blamed)}: {sentence}")
        elif o.verbose:
            print(f"{kind}: rank {r} after {late:.2f} s: {sentence}")
    return wrong


def faults(o, place, uplink):
    wrong, tried = [], 0
    with Fabric(o.leaves, o.hosts, o.rate, uplink) as fabric:
        for kind in ("link", "uplink", "kill", "stop") if o.leaves > 1 else ("link", "kill", "stop"):
            missed = 0
            for _ in range(o.faults):
                found = one_fault(fabric, o, kind, place, 29500 + tried)
                tried += 1
                missed += 1 if found else 0
                wrong += found
            print(f"{kind}: {o.faults - missed} of {o.faults} told in time by every other rank", flush=True)
    print("\n".join(wrong))
    return 1 if wrong else 0


def in_bytes(text):
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not found:
        sys.exit(f"fabric.py: '{text}' is no size")
    return int(found.group(1)) * units[found.group(2)]


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("program")
    parse.add_argument("rank")
    parse.add_argument("--leaves", type=int, default=2)
    parse.add_argument("--hosts", type=int, default=2, help="per leaf")
    parse.add_argument("--rate", type=float, default=1000, help="Mbit/s of a host's link")
    parse.add_argument("--oversubscription", type=float, default=4)
    parse.add_argument("--sizes", default="4M")
    parse.add_argument("--order", choices=["packed", "scattered"], default="packed")
    parse.add_argument("--calls", type=int, default=3)
    parse.add_argument("--algorithm", help="of 'topocoll plan', instead of its choice")
    parse.add_argument("--at-least", type=float, default=60, help="percent of the bound")
    parse.add_argument("--faults", type=int, default=0, help="no timing; so many of each kind of fault")
    parse.add_argument("--within", type=float, default=2, help="with --faults: seconds that a rank may take to say so")
    parse.add_argument("--verbose", action="store_true", help="with --faults: what each rank said")
    parse.add_argument("--tls", default="tcp,self", help="UCX_TLS")
    o = parse.parse_args()
    if os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("ip", "tc", "unshare")):
        print("skipped: making a fabric needs root, ip, tc and unshare")
        sys.exit(77)
    ranks = o.leaves * o.hosts
    uplink = o.rate * o.hosts / o.oversubscription
    # The two-level plan sends the whole array over each uplink once, in each direction; so busbw, which counts 2(n-1)/n of the
    # array, is at most that many times the rate of an uplink. No host takes more than its own link.
    bound = (min(o.rate, uplink * 2 * (ranks - 1) / ranks) if o.leaves > 1 else o.rate) * 1e6 / 8 * PAYLOAD
    place = [(leaf, i) for leaf in range(o.leaves) for i in range(o.hosts)] if o.order == "packed" else [(leaf, i) for i in range(o.hosts) for leaf in range(o.leaves)]
    worst = 1e9
    try:
        if o.faults > 0:
            sys.exit(faults(o, place, uplink))
        with tempfile.TemporaryDirectory() as folder, Fabric(o.leaves, o.hosts, o.rate, uplink) as fabric:
            for port, size in enumerate(map(in_bytes, o.sizes.split(","))):
                plan = pathlib.Path(folder, f"plan{port}.json")
                spec = f"pcie:nodes={ranks},gpus=1,gpus_per_switch=1,nics=1,nic_rate={o.rate / 1000:g}Gb/s,rails=no,network=ethernet,leaves={o.leaves}" + \
                    (f",oversubscription={o.oversubscription:g}" if o.leaves > 1 else "") + (f",order={o.order}" if o.order != "packed" else "")
                told = run(o.program, "plan", "--fabric", spec, "--size", str(size), "--output", str(plan), "--brief", *(["--algorithm", o.algorithm] if o.algorithm else []))
                before = fabric.crossed()
                outcomes = Ranks(fabric, o, place, 29400 + port, str(plan), size, o.calls).outcomes(300)
                failed = [last_line(err) for status, _, err in outcomes if status != 0]
                if failed:
                    print("\n".join(failed))
                    sys.exit(1)
                moved, seconds = outcomes[0][1].split()
                busbw = float(moved) / float(seconds) * 2 * (ranks - 1) / ranks
                share = 100 * busbw / bound
                worst = min(worst, share)
                crossed = [(after - b) / (o.calls + 1) for after, b in zip(fabric.crossed(), before)]  # in a call
                over = [c / size for c in crossed]
                # The counters see segments of up to 64 KiB with one header; on the wire, and for tc, each 1448 bytes have one.
                busy = min((c / PAYLOAD / float(seconds) / (uplink * 1e6 / 8) for c in crossed), default=0)
                print(f"{o.leaves} x {o.hosts}, {o.oversubscription:g}:1, {o.order}, {size} bytes: {busbw / 1e9:.4f} GB/s busbw, {share:.0f} % of {bound / 1e9:.4f}"
                      + (f"; uplinks carry {max(over):.2f} of the array each and are busy {100 * busy:.0f} % of the time or more" if over else "") + f"; plan: {told.splitlines()[0].split('  ')[-1] if told else '?'}", flush=True)
    except Skip as e:
        print(f"skipped: {e}")
        sys.exit(77)
    sys.exit(0 if worst >= o.at_least else 1)


if __name__ == "__main__":
    main()
