"""Compares how manifests are read with how kubectl reads them; run by ./run:  manifests.py PROGRAM KUBECTL WORK

A manifest with random changes is turned into JSON by kubectl, which asks no cluster for that. What `args` says of that JSON, it must say
of the manifest. A key that is there twice, and the tag !!binary, is refused where `args` reads it; kubectl takes the last one, and decodes the other. What comes after a line of "..." is refused, if it
is no document; kubectl leaves it out.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys

TOKENS = ["", "~", "null", "yes", "on", "No", "0x10", "1_000", "010", "1e3", ".inf", "'a'", '"80\\n"', "[1.2.3.4, 001:db8::]", "[fd00::]", "{a: fd00::}",
          "{a: b, c: [d::, e]}", "[a, b]", "|\n            80", ">-\n            80\n            443", "'10.0.0.0/8'", "!!str 80", "!!int '80'", "&a x", "*a",
          "2026-01-01", "a: b", "- a", "# comment", "'*'", "*", "@x", "%x", "\"\\u00e9\"", "é", "a #b", "a#b", "::1", "[::1]", "[a:b]", "{a}", "+1", "-0", "0o17",
          "!Ref 80", "!Sub '${a}'", "!Join [a, !x b]", "!!timestamp 2026-01-01", "!!float 5", "!!set {a}", "!!binary ODA=", "[!!str fd00::, &b fd01::]",
          "[fd00::,\n            fd01::]", "{<<: *a}", "{<<: [*a, {x: y}]}", "&a {sidecar.istio.io/inject: 'false'}", "<<"]
LINES = ["  checksum/config:", "a: b", "  a: b", "    x: [fd00::, 2001:db8::]", "---", "...", "# comment", "", "\t", "spec:", "    sidecar.istio.io/inject: \"true\"",
         "  labels: {a: null, b: ''}", "  annotations:",
         "    <<: {sidecar.istio.io/inject: 'false'}", "    !!merge <<: {sidecar.istio.io/inject: 'false'}", "    '<<': a",
         "    <<: [{traffic.sidecar.istio.io/excludeInboundPorts: '1'}, {traffic.sidecar.istio.io/excludeInboundPorts: '2', a: b}]",
         "    ! <<: {traffic.sidecar.istio.io/includeInboundPorts: '1'}", "  <<: {labels: {a: b}, name: merged}", "<<: {metadata: {name: merged}}",
         "    traffic.sidecar.istio.io/excludeInboundPorts: '3'", "...\n%YAML 1.1\n---"]


def changed(text):
    lines = text.split("\n")
    for _ in range(random.choice([1, 1, 2, 3])):
        at = random.randrange(len(lines))
        what = random.randrange(6)
        if what == 0:
            lines.insert(at, random.choice(LINES))
        elif what == 1:
            lines.insert(at, lines[at])
        elif what == 2:
            del lines[at]
            lines = lines or [""]
        elif what == 3:
            lines[at] = random.choice(["", " ", "  "]) + lines[at] if random.random() < 0.5 else lines[at][1:]
        else:
            lines[at] = re.sub(r":( .*|)$", lambda _: ": " + random.choice(TOKENS), lines[at])
    return "\n".join(lines)


IN, OUT = "traffic.sidecar.istio.io/includeInboundPorts", "traffic.sidecar.istio.io/excludeOutboundPorts"
MERGES = [f"{IN}: '1'", f"{OUT}: '2'", "<<: *a", "<<: *b", "<<: [*a, *b]", "!!merge <<: *b", f"!!merge '<<': {{{IN}: '3'}}", "! <<: *a", "'<<': x",
          f"<<: {{{OUT}: '4', <<: *a}}", f"<<: [{{{IN}: '5'}}, *c]", "<<: *d", "<<: ", "<<: []"]


def with_merges():
    """A pod whose annotations are merged."""
    lines = [f"x: [&a {{{IN}: '80'}}, &b {{{OUT}: '22', <<: *a}}, &c {{{IN}: '90', {OUT}: '9'}}]", "d: &d [*a]", "apiVersion: v1", "kind: Pod",
             "metadata:", "  annotations:"]
    return "\n".join(lines + [f"    {line}" for line in random.sample(MERGES, random.randint(1, 4))]) + "\n"


def said(program, file):
    ran = subprocess.run([program, "args", "--json", "--injector", "sidetrack", "-f", str(file)], capture_output=True, text=True)
    if ran.returncode not in (0, 2):
        raise SystemExit(f"FAILED: args ended with {ran.returncode}: {ran.stderr}\n{file.read_text()}")
    return (json.loads(ran.stdout)["pods"] if ran.returncode == 0 else "refused"), ran.stderr


def main():
    program, kubectl, work = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    random.seed(int(os.environ.get("SIDETRACK_SEED") or 20))
    count = int(os.environ.get("SIDETRACK_PODS") or 200)
    here = pathlib.Path(__file__).parent
    sources = [path.read_text() for path in sorted((here / "../golden/manifests").glob("*.yaml"))]
    environment = {**os.environ, "KUBECONFIG": "/dev/null", "HOME": str(work)}
    different = alike = twice = refused = 0
    for _ in range(count):
        text = with_merges() if random.random() < 0.2 else changed(random.choice(sources))
        manifest, as_json = work / "manifest.yaml", work / "manifest.json"
        manifest.write_text(text)
        ran = subprocess.run([kubectl, "annotate", "--local", "-o", "json", "-f", str(manifest), "example.com/a=b"], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, env=environment, timeout=60)
        if ran.returncode != 0:
            refused += 1
            said(program, manifest)
            continue
        as_json.write_text(ran.stdout)
        (ours, why), (theirs, why_json) = said(program, manifest), said(program, as_json)
        if ours == theirs:
            alike += 1
        elif "duplicate key" in why or "!!binary" in why or "expected <document start>" in why:
            twice += 1
        else:
            different += 1
            print(f"FAILED:\n{text}\n  args of the manifest: {ours} {why}\n  args of kubectl's JSON: {theirs} {why_json}")
    print(f"{count} manifests: {alike} read as kubectl reads them, {twice} refused for what kubectl leaves out, "
          f"{refused} refused by kubectl; {different} different")
    sys.exit(different != 0 or alike < count // 10)


main()
