"""Ambient pods: Istio's agent on the node programs their rules, and ztunnel, where there is one, takes their connections."""
import concurrent.futures
import json
import re
import subprocess

import objects
from cluster import HERE, NODE, apply, differs, eventually, get, kubectl, ready_pods, run
from compare import rules_of
from mesh import CONTROL, import_image, in_world, install_istio
from scenarios import ENTRY, ENTRY_ADDRESS

NAMES = ["client", "web", "open", "probed"]
OPTIONS = ("--dataplane", "ambient", "--redirect-dns", "--ip-families", "ipv4,ipv6") # what the agent programs, always for both families
# Where packets of a pod end: the arguments of `explain`, and what it says.
ENDS = {
    "out tcp 10.96.0.10:80": "127.0.0.1:15001",
    "out tcp 10.96.0.10:80 --mark 0x539": "10.96.0.10:80", # ztunnel's own
    "out udp 10.96.0.10:53": "127.0.0.1:15053",
    "out tcp 10.96.0.10:53": "127.0.0.1:15053",
    "in tcp :8080 --from 198.51.100.10": ":15006",
    "in tcp :15008 --from 198.51.100.10": ":15008",
    "in tcp :8080 --from 169.254.7.127": ":8080", # a probe
}


def exit_code(program, *words, pod=None):
    """How a command of Sidetrack ends in a pod, or on the node, and what it says."""
    done = subprocess.run((program, *words, *(("--pid", str(pod.process)) if pod else ())), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def ends_with(code, got):
    return "" if got[0] == code else f"exit code {got[0]}, expected {code}\n{got[1]}"


def says(words, got, code=0):
    missing = [word for word in words if word not in got[1]]
    return ends_with(code, got) or (f"missing: {missing}\n{got[1]}" if missing else "")


def answers_about(checks, program, pod):
    """What Sidetrack says of a pod that the agent has programmed."""
    name = f"ambient: {pod.name}:"
    checks.check(f"{name} verify says that the agent's rules are as requested", ends_with(0, exit_code(program, "verify", *OPTIONS, pod=pod)))
    checks.check(f"{name} verify finds what is not asked for", ends_with(6, exit_code(program, "verify", *OPTIONS, "--ingress", pod=pod)))
    checks.check(f"{name} show tells the rules", says(["ISTIO_PRERT", "15006", "15008"], exit_code(program, "show", pod=pod)))
    checks.check(f"{name} map says where packets end", says(["15001", "15006", "15053"], exit_code(program, "map", pod=pod)))
    checks.check(f"{name} lint has no finding", ends_with(0, exit_code(program, "lint", *OPTIONS, pod=pod)))
    for words, end in ENDS.items():
        checks.check(f"{name} explain {words}: {end}", says([end], exit_code(program, "explain", *words.split(), "--brief", pod=pod)))
    seen = {each["pid"]: each for each in json.loads(exit_code(program, "pods", "--json")[1])["pods"]}
    listed = [each for each in seen.values() if set(pod.addresses) & set(each["addresses"])]
    checks.check(f"{name} pods says that it is ambient", "" if listed and listed[0]["ambient"] else f"of {pod.addresses}: {listed}")


def ztunnel_log(port):
    """What ztunnel wrote of the connection that a client began from a port: of each end that is a pod."""
    name = get("pods", "--namespace", "istio-system", "--selector", "app=ztunnel")["items"][0]["metadata"]["name"]
    return [line for line in kubectl("logs", name, "--namespace", "istio-system", "--tail=2000").splitlines()
            if "connection complete" in line and re.search(rf"\bsrc\.addr=\S+:{port} ", line)]


def by_hbone(client, server):
    """A request of the client reaches the server, which sees the client's address, by ztunnel's HBONE."""
    expected = f"app {server.name}:8080 from {client.addresses[0]} plain"
    def passes():
        """the server answers, and ztunnel has logged the port of HBONE"""
        said = client.client("http", f"http://{server.name}.ambient.svc.cluster.local/")
        if said.get("said") != expected:
            raise RuntimeError(f"got {said}, expected {expected!r}")
        def logged():
            """ztunnel logs the connection with the port of HBONE"""
            return any(":15008 " in line for line in ztunnel_log(said["port"]))
        return eventually(10, logged)
    eventually(20, passes)


def connections(checks, pods):
    client, web = pods["client"], pods["web"]
    for server in (web, pods["open"], pods["probed"]):
        checks.attempt(f"ambient: client to {server.name}, by HBONE, with the client's address", lambda server=server: by_hbone(client, server))
    checks.check("ambient: DNS, udp, answered by ztunnel", differs(client.client("dns", ENTRY, "udp", "10.96.0.10"), {"addresses": [ENTRY_ADDRESS]}))
    checks.check("ambient: DNS, tcp, answered by ztunnel", differs(client.client("dns", ENTRY, "tcp", "10.96.0.10"), {"addresses": [ENTRY_ADDRESS]}))
    def from_world(pod):
        return json.loads(run(*in_world("python3", str(HERE / "client.py"), "http", f"http://{pod.addresses[0]}:8080/")))
    refused = from_world(web) # ztunnel takes the connection before it ends it
    checks.check("ambient: plain text to a STRICT pod is refused", "" if "error" in refused or refused["code"] == "none" else str(refused))
    checks.check("ambient: plain text to a PERMISSIVE pod passes", differs(from_world(pods["open"]).get("said"), "app open:8080 from 198.51.100.10 plain"))
    status = get("pod", "probed", "--namespace", "ambient")["status"]["containerStatuses"]
    checks.check("ambient: the kubelet's probes reach a STRICT pod", differs([each.get("restartCount", 0) for each in status], [0]))


def take_away(pod):
    """What a hand does: rules and a route go, the chains stay."""
    for family in ("iptables", "ip6tables"):
        for backend in ("nft", "legacy"): # the agent takes the one that has rules, else nft
            for table, chain in (("nat", "ISTIO_OUTPUT"), ("nat", "ISTIO_PRERT"), ("mangle", "ISTIO_PRERT")):
                pod.inside(f"{family}-{backend}", "--table", table, "--flush", chain)
    pod.inside("ip", "rule", "del", "pref", "32764")


def put_back(checks, program, pods, with_ztunnel):
    """Rules that were taken away by hand, while a client sends."""
    client, server = pods["client"], pods["open"]
    running = NODE / "load"
    running.touch()
    with concurrent.futures.ThreadPoolExecutor() as workers:
        load = [workers.submit(client.client, "load", "http://open.ambient.svc.cluster.local/load", str(running)) for _ in range(3 * with_ztunnel)]
        try:
            for pod in (client, server):
                take_away(pod)
                checks.check(f"ambient: {pod.name}: verify says what was taken away", says(["ISTIO_PRERT"], exit_code(program, "verify", *OPTIONS, pod=pod), 6))
            for pod in (client, server):
                checks.check(f"ambient: {pod.name}: apply puts it back", ends_with(0, exit_code(program, "apply", *OPTIONS, pod=pod)))
                checks.check(f"ambient: {pod.name}: verify is content", ends_with(0, exit_code(program, "verify", *OPTIONS, pod=pod)))
            if with_ztunnel:
                checks.attempt("ambient: a new connection is captured again", lambda: by_hbone(client, server))
        finally:
            running.unlink()
        seen = [each.result() for each in load]
    total = sum(sum(each.values()) for each in seen)
    if with_ztunnel:
        checks.check(f"ambient: none of {total} requests failed meanwhile", "" if {code for each in seen for code in each} == {"200"} else str(seen))


def leave_the_mesh(checks, pod):
    """The agent takes away what Sidetrack has put back."""
    kubectl("label", "pod", pod.name, "--namespace", "ambient", "istio.io/dataplane-mode=none")
    def are_gone():
        """the pod has no rules"""
        return not rules_of(pod) or None
    checks.attempt(f"ambient: {pod.name} leaves the mesh: the agent removes the rules that Sidetrack has put back", lambda: eventually(30, are_gone))


def phase_ambient(phase, image, program):
    """The reference's agent and ztunnel; without a ztunnel the rules alone."""
    checks = phase.checks
    with_ztunnel = (CONTROL / "ztunnel.tar").exists()
    import_image("install-cni")
    install_istio(image, "profile=ambient", "values.global.variant=", f"components.ztunnel.enabled={str(with_ztunnel).lower()}")
    label = {"istio.io/dataplane-mode": "ambient"}
    namespace = objects.namespace("ambient")
    namespace["metadata"]["labels"] = {"sidetrack-test": "yes"} | (label if with_ztunnel else {})
    apply([namespace])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "ambient"))
    apply(objects.mesh("ambient", NAMES))
    apply([objects.pod("ambient", name) for name in NAMES])
    pods = {name: pod for (_, name), pod in ready_pods(["ambient"]).items()}
    if not with_ztunnel: # the agent refuses new pods then, and programs those that are there
        kubectl("label", "namespace", "ambient", "istio.io/dataplane-mode=ambient")
    def all_programmed():
        """the agent has programmed all pods"""
        return all(rules_of(pod) for pod in pods.values())
    checks.attempt("ambient: the agent programs the pods", lambda: eventually(60, all_programmed))
    for pod in pods.values():
        answers_about(checks, program, pod)
    if with_ztunnel:
        connections(checks, pods)
    else:
        print("NOT RUN: ambient: connections, which need a ztunnel: ZTUNNEL=PROGRAM names one; see CONTRIBUTING.md")
    put_back(checks, program, pods, with_ztunnel)
    leave_the_mesh(checks, pods["open"])
    install_istio(image)
