# SPDX-License-Identifier: GPL-2.0-or-later
"""A network namespace with an interface that leads out, for as long as it is needed, and packets that are sent there."""
import json
import os
import subprocess
import sys

ADDRESSES = {4: ("10.1.0.1/24", "10.1.0.2"), 6: ("fd00::1/64", "fd00::2")}

# Sends one packet of each kind; TCP is a SYN that nobody answers.
SEND = """
import json, socket, struct, sys
for family, protocol, to, port, source in json.load(sys.stdin):
    domain = socket.AF_INET if family == 4 else socket.AF_INET6
    kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[protocol]
    with socket.socket(domain, kind) as sender:
        sender.setblocking(False)
        sender.bind(("", source))
        if protocol == "udp":
            sender.sendto(b"x", (to, port))
        elif sender.connect_ex((to, port)) not in (0, 115):
            sys.exit("cannot connect")
"""


def fail(message):
    print("FAILED:", message)
    fail.count += 1


fail.count = 0


class Namespace:
    def __init__(self, program, name):
        self.program = program
        self.name = f"foreign-{os.getpid()}-{name}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)

    def __enter__(self):
        for words in ["link set lo up", "link add d0 type veth peer name p0", "link set d0 up", "link set p0 up"]:
            self.run(["ip"] + words.split())
        for family, (own, other) in ADDRESSES.items():
            self.run(["ip", f"-{family}", "address", "add", own, "dev", "d0"] + (["nodad"] if family == 6 else []))
            self.run(["ip", f"-{family}", "neighbour", "add", other, "lladdr", "02:00:00:00:00:02", "dev", "d0"])
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def call(self, words, text=None):
        return subprocess.run(["ip", "netns", "exec", self.name] + words, input=text, text=True, capture_output=True,
                              timeout=120)

    def run(self, words, text=None):
        done = self.call(words, text)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def sidetrack(self, *words, expected=0):
        done = self.call([self.program, *words])
        if done.returncode != expected:
            fail(f"sidetrack {' '.join(words)}: exit code {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def json(self, *words):
        text = self.sidetrack(*words)
        return json.loads(text) if text else {}

    def send(self, packets):
        self.run([sys.executable, "-c", SEND], json.dumps(packets))
