#!/usr/bin/env python3
"""Sidetrack beside istio-init of releases of Istio:  releases.py ISTIOCTL CLONE PROGRAM PROGRAMS RELEASE…

CLONE: Istio's repository with its tags; PROGRAM: Sidetrack's; PROGRAMS: a folder with each release's own istio-iptables, by its number.
For each release, its own injection template says what istio-init gets for the pods below; its own program and Sidetrack get it, each in a
network namespace of its own, and must leave the same rules, routes included. Used by scripts/test istio-releases."""
import collections
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import yaml

from cluster import Checks

SIDECAR, TRAFFIC = "sidecar.istio.io/", "traffic.sidecar.istio.io/"
# Each pod: its annotations.
PODS = {
    "no annotation": {},
    "TPROXY": {SIDECAR + "interceptionMode": "TPROXY"},
    "NONE": {SIDECAR + "interceptionMode": "NONE"},
    "included": {TRAFFIC + "includeInboundPorts": "8080,9090", TRAFFIC + "includeOutboundIPRanges": "203.0.113.0/24", TRAFFIC + "includeOutboundPorts": "8999"},
    "excluded": {TRAFFIC + "excludeInboundPorts": "9080", TRAFFIC + "excludeOutboundPorts": "8999", TRAFFIC + "excludeOutboundIPRanges": "203.0.113.0/24"},
    "TPROXY, ports": {SIDECAR + "interceptionMode": "TPROXY", TRAFFIC + "includeInboundPorts": "8080,9090"},
    "nothing inbound": {TRAFFIC + "includeInboundPorts": ""},
    "virtual interfaces": {TRAFFIC + "kubevirtInterfaces": "tap0,tap1"},
    "excluded interfaces": {TRAFFIC + "excludeInterfaces": "net1"},
    "status port": {"status.sidecar.istio.io/port": "15029"},
    "DNS": {"proxy.istio.io/config": "proxyMetadata: {ISTIO_META_DNS_CAPTURE: 'true'}"},
    "INVALID_DROP": {"proxy.istio.io/config": "proxyMetadata: {INVALID_DROP: 'true'}"},
    "dual stack": {"proxy.istio.io/config": "proxyMetadata: {ISTIO_DUAL_STACK: 'true'}"},
}
CHARTS = "manifests/charts/istio-control/istio-discovery/"
# Where packets end otherwise: the last minor release of it, lines of the difference, and what they are about; None: of no effect alone.
DIFFERENCES = [
    (24, r" nat OUTPUT -A OUTPUT (-p tcp )?-j ISTIO_OUTPUT$| nat ISTIO_OUTPUT -A ISTIO_OUTPUT -j RETURN$| -p udp -m udp --dport 8999 -j RETURN$", None),
    (22, r"DNS|port 15053| CT --zone |--dport 53 | raw PREROUTING -A PREROUTING -j ISTIO_INBOUND$| raw ISTIO_INBOUND chain$",
     "DNS over UDP from Envoy's own 127.0.0.6 was captured"),
    (18, r"ISTIO_DROP", "INVALID_DROP was not a variable of istio-init"),
    (18, r"::", "ISTIO_DUAL_STACK was not a variable of istio-init"),
    (16, r" nat ISTIO_OUTPUT -A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo .*-j ISTIO_IN_REDIRECT$", "what Envoy sends to the pod's own port 15008 was captured"),
    (12, r" ISTIO_INBOUND -A ISTIO_INBOUND -p tcp -m tcp --dport 22 -j RETURN$", "the inbound port 22 was not captured"),
    (10, r" mangle (OUTPUT -A OUTPUT|ISTIO_INBOUND -A ISTIO_INBOUND) .*(-o lo|-i lo) ", "TPROXY captured what the app sends to itself"),
]

# What both do in a pod's network namespace, and what is there then.
IN_POD = """
ip link set lo up
ip link add eth0 type veth peer name eth1
ip address add 10.244.0.5/24 dev eth0
[ "$1" = ipv4 ] || ip address add fd00:244::5/64 dev eth0 nodad
ip link set eth0 up
mount --bind "$2" /etc/resolv.conf
program=$3 shown=$4
shift 4
"$@" >&2 || exit
"$program" show --json >"$shown" || exit
{ for family in ip ip6; do
  "$family"tables-nft-save
  "$family"tables-legacy-save
done; } 2>/dev/null | sed -n 's/ *\\[[0-9:]*\\]//; /^[*:-]/p'
for family in -4 -6; do ip "$family" rule show pref 32765; ip "$family" route show table 133 2>/dev/null || true; done
"""


def in_pod(files, stack, program, shown, *command):
    """The rules and routes that a command leaves, chain by chain, also in the file "shown"; an error says why it failed."""
    done = subprocess.run(("unshare", "--net", "--mount", "sh", "-c", IN_POD, "sh", stack, str(files / "resolv.conf"), program, str(files / shown), *command),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-500:]}")
    table, rules = "", []
    for line in done.stdout.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            if line.split()[1] == "-": # a chain of a user
                rules.append((f"{table} {line[1:].split()[0]}", "chain"))
        elif line.startswith("-A "):
            rules.append((f"{table} {line.split()[1]}", line))
        else:
            rules.append(("routing", line.replace(" proto 137", ""))) # by which Sidetrack knows its own
    return sorted(rules, key=lambda rule: (rule[0], rule[1] != "chain")) # the order within a chain stays


def show(clone, release, path):
    return subprocess.run(("git", "-C", clone, "show", f"{release}:{path}"), capture_output=True, text=True, check=True).stdout


def write_configuration(files, clone, release, cni):
    """What the release's injector has in its ConfigMap by default."""
    template = show(clone, release, CHARTS + "files/injection-template.yaml")
    template = template.replace(".EstimatedConcurrency", "2") # of istio-proxy, which today's injector has under another name
    values = yaml.safe_load(show(clone, release, CHARTS + "values.yaml"))
    for wrapper in ("_internal_defaults_do_not_set", "defaults"): # of newer charts
        values = values.get(wrapper) or values
    if cni:
        values.setdefault("istio_cni", {})["enabled"] = True
        values.setdefault("pilot", {}).setdefault("cni", {})["enabled"] = True
    (files / "config").write_text(yaml.safe_dump({"policy": "enabled", "defaultTemplates": ["sidecar"], "templates": {"sidecar": template}}))
    (files / "values").write_text(json.dumps(values))
    (files / "mesh").write_text("defaultConfig: {discoveryAddress: 'istiod.istio-system.svc:15012'}\n")
    (files / "kubeconfig").write_text("{apiVersion: v1, kind: Config, clusters: [{name: n, cluster: {server: 'https://127.0.0.1:1'}}],"
                                      " contexts: [{name: n, context: {cluster: n}}], current-context: n}\n")
    (files / "resolv.conf").write_text("nameserver 10.96.0.10\n")


def init_container(istioctl, files, annotations):
    """istio-init or istio-validation, as the template makes it; None if there is none."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
           "spec": {"containers": [{"name": "app", "image": "app"}]}}
    (files / "pod").write_text(yaml.safe_dump(pod))
    done = subprocess.run((istioctl, "kube-inject", "--filename", files / "pod", "--injectConfigFile", files / "config", "--meshConfigFile",
                           files / "mesh", "--valuesFile", files / "values"), env={**os.environ, "KUBECONFIG": str(files / "kubeconfig")},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"the injection template fails: {done.stderr[-300:]}")
    made, = (each for each in yaml.safe_load_all(done.stdout) if each and each.get("kind") == "Pod")
    return next((each for each in made["spec"].get("initContainers", []) if each["name"] in ("istio-init", "istio-validation")), None)


def unlike(theirs, ours):
    only = [f"- {' '.join(rule)}" for rule in theirs if rule not in ours] + [f"+ {' '.join(rule)}" for rule in ours if rule not in theirs]
    return "\n".join(only) or ("" if theirs == ours else "the order differs")


def explanations(release, lines):
    """What all lines of a difference are about, as DIFFERENCES knows it; nothing if it does not know one of them."""
    known = [(pattern, why) for last, pattern, why in DIFFERENCES if int(release.split(".")[1]) <= last]
    found = [next(((why,) for pattern, why in known if re.search(pattern, line)), None) for line in lines]
    return [] if None in found else [why for why, in dict.fromkeys(found) if why]


def outcome(files, program, stack, release, reference, init):
    """Whether both leave the same: "identical" rules, the "same effect" on every packet, why a release is known to differ, or how it does."""
    variables = [f"{each['name']}={each.get('value', '')}" for each in init.get("env", [])]
    # The options of the log are pilot-agent's, not its own.
    words = [word for word in init["args"][1:] if not word.startswith("--log_")]
    theirs = in_pod(files, stack, program, "theirs", "env", *variables, reference, *words)
    ours = in_pod(files, stack, program, "ours", "env", *variables, program, *init["args"])
    if theirs == ours:
        return "identical"
    done = subprocess.run((program, "diff", "--effect", files / "theirs", files / "ours"), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return "same effect"
    lines = unlike(theirs, ours)
    if done.returncode == 6 and (reasons := explanations(release, lines.splitlines())):
        return reasons
    return f"{shlex.join(init['args'])} {variables}\n{lines}\nby effect, exit code {done.returncode}:\n{done.stdout}{done.stderr}"


def validates(istioctl, files, program):
    """Sidetrack in place of the template's istio-validation finds the rules that it asks for."""
    words = init_container(istioctl, files, {})["args"]
    rules = [word for word in words if word not in ("--run-validation", "--skip-rule-apply")]
    if rules == words:
        raise RuntimeError(f"the template has no istio-validation: {words}")
    in_pod(files, "ipv4", program, "shown", "sh", "-c", f"{shlex.join([program, *rules])} && {shlex.join([program, *words])}")


SAME = ("identical", "same effect")


def test(checks, istioctl, clone, program, programs, release, files):
    """Returns how many pods had which outcome, and why they differ."""
    seen, reasons = collections.Counter(), []
    write_configuration(files, clone, release, cni=False)
    for name, annotations in PODS.items():
        try:
            init = init_container(istioctl, files, annotations)
        except RuntimeError as error:
            checks.check(f"{release}: {name}", str(error))
            continue
        if name == "NONE":
            checks.check(f"{release}: {name}: no istio-init", "" if init is None else str(init))
            continue
        try:
            got = outcome(files, program, "dual" if name == "dual stack" else "ipv4", release, f"{programs}/{release}", init)
        except RuntimeError as error:
            got = str(error)
        if isinstance(got, list):
            reasons += got
            got = "; ".join(got)
            checks.check(f"{release}: {name}: differs: {got}", "")
        else:
            seen[got] += 1
            checks.check(f"{release}: {name}{f': {got}' if got in SAME else ''}", "" if got in SAME else got)
    write_configuration(files, clone, release, cni=True)
    checks.attempt(f"{release}: istio-validation", lambda: validates(istioctl, files, program))
    return seen, reasons


def main(istioctl, clone, program, programs, *releases):
    checks, rows = Checks(), []
    with tempfile.TemporaryDirectory() as folder:
        for release in releases:
            seen, reasons = test(checks, istioctl, clone, program, programs, release, pathlib.Path(folder))
            rows.append(f"| {release} | {seen['identical']} | {seen['same effect']} | {'; '.join(dict.fromkeys(reasons))} |")
    print("\n| release | pods with identical rules | other rules, same effect | what differs |\n|---|--:|--:|---|", *rows, "", sep="\n")
    return 0 if checks.summary() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
