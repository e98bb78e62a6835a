"""The phases of scripts/test istio. Each makes its namespaces, and prints a line for each thing that is checked."""
import concurrent.futures
import json
import os
import pathlib
import subprocess

import bench
import objects
from ambient import exit_code, phase_ambient, says
from chart import phase_chart
from cluster import HERE, NODE, Pod, apply, differs, eventually, get, is_ready, kubectl, network_of, ready_pods, run
from compare import captured_like_the_reference, compare, listeners, rules_of
from mesh import CONTROL, MESH, REFERENCE, first_container, import_image, install_by_helm, install_by_operator, install_istio, mesh_config, set_values, wait_for_istiod
from scenarios import PASSTHROUGH, PODS, SCENARIOS, WORLD

SIDES = {"reference": "reference", "sidetrack": None} # namespace: the template that is injected after Istio's own


class Phase:
    def __init__(self, checks, short):
        self.checks, self.short = checks, short

    def pods(self):
        return [name for name, pod in PODS.items() if pod.get("short") or not self.short]

    def scenarios(self):
        return {name: scenario for name, scenario in SCENARIOS.items() if scenario.get("short") or not self.short}


def init_words(pod):
    """The arguments of a pod's istio-init, and its variables for `env`."""
    init = pod.init_container("istio-init")
    return init["args"][1:], [f"{each['name']}={each.get('value', '')}" for each in init.get("env", [])]


def rules_agree(phase, pods, program):
    """To Sidetrack, the rules of both are what istio-init's arguments ask for."""
    for side, name in sorted(pods):
        pod = pods[side, name]
        if not pod.init_container("istio-init"):
            continue
        words, variables = init_words(pod)
        done = subprocess.run(("env", *variables, program, "verify", "--pid", str(pod.process), *words), capture_output=True, text=True, check=False)
        phase.checks.check(f"{name}: sidetrack verify says that the rules of {side} are as requested",
                           f"exit code {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else "")


def run_init(pod, program, whose):
    """istio-init once more in a pod, as if its container were run again: the reference's or Sidetrack."""
    words, variables = init_words(pod)
    if whose == "sidetrack":
        run("env", *variables, program, "istio-iptables", "--pid", str(pod.process), *words)
        return
    # It reads the pod's name servers where a container has them.
    servers = NODE / "resolv.conf.of-pod"
    servers.write_bytes(pathlib.Path(f"/proc/{pod.process}/root/etc/resolv.conf").read_bytes())
    run("unshare", "--mount", "nsenter", f"--net=/proc/{pod.process}/ns/net", "sh", "-c",
        f'mount --bind {servers} /etc/resolv.conf && exec env "$@"', "sh", *variables, "pilot-agent", "istio-iptables", *words)


def run_again(pods, program):
    """Each istio-init in its own pods; not the reference's with TPROXY, whose second policy rule and second set of rules lose connections."""
    for (side, name), pod in pods.items():
        if pod.init_container("istio-init") and (side, name) != ("reference", "tproxy"):
            run_init(pod, program, side)


def take_over(pods, program):
    """Each istio-init in the pods of the other, as after an upgrade."""
    for (side, _), pod in pods.items():
        if pod.init_container("istio-init"):
            run_init(pod, program, "sidetrack" if side == "reference" else "reference")


def make(phase, image, names, sides, container, annotations=None):
    """The pods of those names in each namespace (of which is said which template is injected after Istio's own), as soon as they are ready."""
    apply([objects.namespace(side, annotations) for side in sides])
    for side in sides:
        eventually(30, lambda side=side: get("serviceaccount", "default", "--namespace", side))
        apply(objects.mesh(side, names))
    apply([objects.pod(side, name, template) for side, template in sides.items() for name in names])
    pods = ready_pods(sides)
    images = {side: {each.init_container(container)["image"] for (where, _), each in pods.items()
                     if where == side and each.init_container(container)} for side in sides}
    phase.checks.check(f"{container} is the reference's in {' and Sidetrack in '.join(sides)}",
                       differs(images, {side: {REFERENCE if template else image} for side, template in sides.items()}))
    return pods


def make_both(phase, image, names, suffix="", annotations=None):
    """The pods with the reference's istio-init and with Sidetrack; returns the two namespaces, and the pods."""
    sides = {side + suffix: template for side, template in SIDES.items()}
    return list(sides), make(phase, image, names, sides, "istio-init", annotations)


def phase_init(phase, image, program):
    """Each pod twice: with the reference's own istio-init, and with Sidetrack as istio-init."""
    sides, pods = make_both(phase, image, phase.pods())
    captured_like_the_reference(phase, pods, sides)
    rules_agree(phase, pods, program)
    compare(phase, pods, sides)
    listeners(phase, pods, sides)
    if phase.short:
        return
    for side in sides:
        for name, expected in (("web", {"rst": True}), ("drop", {"error": "no answer"})):
            # Over lo: kube-proxy's rules of the node drop such packets between pods.
            phase.checks.check(f"{side}: a packet that is INVALID, to {name}: the pod {'does not answer' if 'error' in expected else 'answers by RST'}", differs(
                pods[side, name].client("stray", pods[side, name].addresses[0], "9080", user=0), expected))
        phase.checks.check(f"{side}: what a virtual machine behind tap0 sends is outbound", differs(
            from_virtual_machine(pods[side, "virtual"]), f"world {WORLD}:8000 from {pods[side, 'virtual'].addresses[0]}"))
    phase.checks.attempt("each istio-init is run again in its own pods", lambda: run_again(pods, program))
    # The reference finds legacy tables then, and programs the same rules in them, too.
    rules_agree(phase, {key: pod for key, pod in pods.items() if key[0] == "sidetrack"}, program)
    compare(phase, pods, sides, prefix="run again: ")
    if phase.checks.attempt("each istio-init is run in the pods of the other", lambda: take_over(pods, program)):
        rules_agree(phase, pods, program)
        compare(phase, pods, sides, prefix="taken over: ")
    restarts = {name: sum(each.get("restartCount", 0) for each in get("pod", "probed", "--namespace", name)["status"]["containerStatuses"]) for name in sides}
    phase.checks.check("probed: the kubelet's probes, by HTTP and TCP, which Istio rewrites, succeed", differs(restarts, dict.fromkeys(sides, 0)))
    on_the_node = run("nft", "list", "ruleset")
    phase.checks.check("host, of the node's own network: the node has no rules of it", "" if "ISTIO_" not in on_the_node and "table inet sidetrack" not in on_the_node else on_the_node)


def from_virtual_machine(pod):
    """What a host behind the pod's tap0 gets of the host outside."""
    machine = f"machine-{pod.namespace}"
    run("ip", "netns", "add", machine)
    pod.inside("ip", "link", "add", "tap0", "type", "veth", "peer", "name", "eth0", "netns", machine)
    pod.inside("ip", "address", "add", "10.111.0.1/24", "dev", "tap0")
    pod.inside("ip", "link", "set", "tap0", "up")
    for words in ("address add 10.111.0.2/24 dev eth0", "link set eth0 up", "route add default via 10.111.0.1"):
        run("ip", "-netns", machine, *words.split())
    said = json.loads(run("ip", "netns", "exec", machine, "python3", str(HERE / "client.py"), "http", f"http://{WORLD}:8000/machine"))
    run("ip", "netns", "delete", machine)
    return said.get("said", said)


def set_variable(variable):
    """Sets a variable of istiod, or unsets it, and waits for the istiod that has it."""
    kubectl("--namespace", "istio-system", "set", "env", "deployment/istiod", variable)
    wait_for_istiod()


def phase_uid(phase, image, program):
    """A proxy of another uid and gid: Istio takes them from OpenShift's annotations of a namespace."""
    set_variable("PLATFORM=openshift")
    sides, pods = make_both(phase, image, ["client", "web", "tproxy"], "-uid", {
        "openshift.io/sa.scc.uid-range": "1000700000/10000", "openshift.io/sa.scc.supplemental-groups": "1000700000/10000"})
    users = {pod.name: pod.init_container("istio-init")["args"][6] for (side, _), pod in pods.items() if side == sides[1]}
    phase.checks.check("another uid: istio-init is told which", differs(users, {"client": "1000709999", "web": "1000709999", "tproxy": "1337"}))
    rules_agree(phase, pods, program)
    compare(phase, pods, sides, prefix="another uid: ")
    set_variable("PLATFORM-")


def phase_nft(phase, image, program):
    """global.nativeNftables: both program tables of their own in nftables."""
    def told():
        """istiod passes --native-nftables to istio-init"""
        return "--native-nftables" in first_container(objects.pod("default", "web")).get("args", [])
    kubectl("label", "namespace", "default", "istio-injection=enabled", "--overwrite")
    set_values(global__nativeNftables=True)
    eventually(60, told)
    sides, pods = make_both(phase, image, ["client", "web", "tproxy", "excluded", "dual", "drop"], "-nft")
    tables = {side: pods[side, "web"].inside("nft", "list", "tables").split() for side in sides}
    phase.checks.check("nativeNftables: the tables are of nftables alone", "" if all("inet" in each and "ip" not in each for each in tables.values()) else str(tables))
    for side in sides:
        rules = pods[side, "drop"].inside("nft", "list", "ruleset")
        phase.checks.check(f"nativeNftables: INVALID_DROP: {side} drops what is INVALID", "" if "ct state invalid" in rules else rules)
    rules_agree(phase, {key: pod for key, pod in pods.items() if key[0].startswith("sidetrack")}, program) # the reference's tables are others
    ipv6 = "no ISTIO_DUAL_STACK: outside, IPv6"
    compare(phase, pods, sides, prefix="nativeNftables: ", explained={ipv6: (
        {"out": {**PASSTHROUGH, "client": "<web>"}}, "its tables of family inet capture IPv6 without being asked to, Sidetrack's as in iptables")})
    listeners(phase, pods, sides, prefix="nativeNftables: ")
    set_values(global__nativeNftables=False)
    kubectl("label", "namespace", "default", "istio-injection-")


def phase_life(phase, image, _):
    """A Job, and init containers of the app, with a native sidecar and with a regular one."""
    names = ["web"]
    sides, _ = make_both(phase, image, names, "-life")
    templates = dict(zip(sides, SIDES.values()))
    apply([objects.short_lived(side, kind, native, templates[side]) for side in sides
           for kind, native in (("Job", True), ("Pod", True), ("Pod", False))])
    said = {side: {} for side in sides}
    for side in sides:
        def job_is_done(side=side):
            """the Job is complete"""
            return get("job", "job", "--namespace", side)["status"].get("succeeded")
        eventually(120, job_is_done)
        for name in ("pod-native", "pod-regular"):
            def app_ended(side=side, name=name):
                """the app has ended"""
                return ended(side, name, "app", "containerStatuses")
            eventually(120, app_ended)
        for name in ("job", "pod-native", "pod-regular"):
            pod = get("pods", "--namespace", side, "--selector", f"app={name}")["items"][0]["metadata"]["name"]
            for container in ("before-the-app", "outside", "app"):
                said[side][f"{name}: {container}"] = kubectl("logs", pod, "--namespace", side, "--container", container).strip().splitlines()[-1]
            order = [each["name"] for each in get("pod", pod, "--namespace", side)["spec"]["initContainers"]]
            native = name != "pod-regular"
            phase.checks.check(f"{name} of {side}: istio-init is {'before' if native else 'after'} the other init containers", differs(
                order.index("istio-init"), 0 if native else len(order) - 1))
    mesh = "app web:8080 from 127.0.0.6 mtls"
    expected = {"job: before-the-app": mesh, "job: app": mesh, "pod-native: before-the-app": mesh, "pod-native: app": mesh,
                "pod-regular: before-the-app": "no answer", "pod-regular: app": mesh,
                **{f"{name}: outside": "world" for name in ("job", "pod-native", "pod-regular")}}
    means = {mesh: "reaches the mesh", "no answer": "before istio-init: its plain text to a STRICT pod is refused", "world": "reaches the host outside"}
    for name, value in expected.items():
        got = {side: said[side][name] if value != "world" else said[side][name].split()[0] for side in sides}
        phase.checks.check(f"{name} {means[value]}", differs(got, dict.fromkeys(sides, value)))


def ended(namespace, name, container, kind="initContainerStatuses"):
    """How a container ended last: exit code, and what it said."""
    status = next(each for each in get("pod", name, "--namespace", namespace)["status"].get(kind, []) if each["name"] == container)
    terminated = status["state"].get("terminated") or status.get("lastState", {}).get("terminated")
    if not terminated:
        raise RuntimeError(f"{container} has not ended: {status['state']}")
    previous = [] if "terminated" in status["state"] else ["--previous"]
    return terminated["exitCode"], kubectl("logs", name, "--namespace", namespace, "--container", container, *previous)


def injects(kind):
    """Waits until istiod injects an init container of that name."""
    def by_the_values():
        """istiod injects by the changed values"""
        return first_container(objects.pod("cni", "web"))["name"] == kind
    eventually(60, by_the_values)


def state_of(program, namespace, name):
    """What `sidetrack pods` says of a pod."""
    said = run(program, "pods", "--json", check=False)
    return next(each["state"] for each in json.loads(said)["pods"] if each["pod"] == name and each["namespace"] == namespace)


def phase_cni(phase, image, program):
    """Pods whose rules Sidetrack's CNI plugin programs; istio-validation, Sidetrack as well, says whether they are there."""
    checks = phase.checks
    apply([objects.namespace("cni")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "cni"))
    set_values(pilot__cni__enabled=True)
    injects("istio-validation")
    apply(objects.mesh("cni", phase.pods()))
    # ---- without the plugin
    unplugged = objects.pod("cni", "web")
    unplugged["metadata"]["name"] = "unplugged"
    apply([unplugged])
    said = ""
    def is_red():
        """istio-validation ends with 126"""
        nonlocal said
        code, said = ended("cni", "unplugged", "istio-validation")
        if code != 126 or "validation failed" not in said:
            raise RuntimeError(f"it ends with {code}: {said}")
        return True
    checks.attempt("without the plugin: istio-validation ends with 126, and says that validation failed", lambda: eventually(60, is_red))
    checks.check("without the plugin: the message says what to do", "" if "plugin" in said else f"it names no plugin: {said.splitlines()[-1:]}")
    kubectl("delete", "pod", "unplugged", "--namespace", "cni", "--now", "--wait=false")
    # ---- with it
    run(program, "cni", "install", "--exclude-namespaces", "kube-system,istio-system")
    apply([objects.pod("cni", name) for name in phase.pods()])
    kubectl("wait", "--for=delete", "pod/unplugged", "--namespace", "cni", "--timeout=60s")
    pods = ready_pods(["cni"])
    checks.check("istio-validation ends with 0", differs(ended("cni", "web", "istio-validation")[0], 0))
    added = [(pod.name, container["name"]) for pod in pods.values() for kind in ("initContainers", "containers") for container in pod.spec.get(kind, [])
             if container.get("securityContext", {}).get("capabilities", {}).get("add")]
    checks.check("no container asks for a capability, but for Envoy that keeps the source", differs(added, [("tproxy", "istio-proxy")]))
    compare(phase, pods, ["cni"], prefix="CNI: ")
    # ---- the pods of the node
    checks.check("CNI: sidetrack pods says that web is as recorded", differs(state_of(program, "cni", "web"), "as_recorded"))
    run(program, "clean", "--pid", str(pods["cni", "web"].process))
    checks.check("CNI: without its rules it differs", differs(state_of(program, "cni", "web"), "differs"))
    run(program, "pods", "--repair", check=False)
    checks.check("CNI: sidetrack pods --repair puts them back", differs(state_of(program, "cni", "web"), "as_recorded"))
    checks.attempt("CNI: a new connection is captured again", lambda: captured_again(pods))
    run(program, "cni", "uninstall")
    set_values(pilot__cni__enabled=False)


def captured_again(pods):
    said = pods["cni", "client"].client("http", "http://web.cni.svc.cluster.local/again")
    if said.get("said") != "app web:8080 from 127.0.0.6 mtls":
        raise RuntimeError(str(said))


def plugins():
    """The chain that the runtime calls for a pod."""
    return [each["type"] for each in json.loads(pathlib.Path("/etc/cni/net.d/10-pods.conflist").read_text())["plugins"]]


def phase_plugins(phase, image, program):
    """Istio's own CNI plugin and Sidetrack's in one chain: each programs the pods of a namespace of its own."""
    checks = phase.checks
    sides = {"plugin-reference": "reference-cni", "plugin-sidetrack": None}
    others = ["kube-system", "istio-system"]
    import_image("install-cni")
    with_agent = ["components.cni.enabled=true", *(f"values.cni.excludeNamespaces[{number}]={name}" for number, name in enumerate([*others, "plugin-sidetrack"]))]
    install_istio(image, *with_agent)

    def install(what):
        """Installs Sidetrack's plugin, which is no error, and warns of Istio's, which is the reader's to judge: exit code 6."""
        code, said = exit_code(program, "cni", "install", "--exclude-namespaces", ",".join([*others, "plugin-reference"]))
        expected = 6 if "istio-cni" in plugins() else 0
        checks.check(f"{what}: cni install names Istio's plugin if it is in the chain",
                     differs((code, "istio-cni is in the chain" in said), (expected, expected == 6)))

    install("both plugins")
    checks.check("both plugins: Sidetrack's is after Istio's", differs(plugins(), ["bridge", "istio-cni", "sidetrack-cni"]))
    checks.check("both plugins: cni status names Istio's", says(["istio-cni is in the chain"], exit_code(program, "cni", "status"), 6))
    names = [name for name in phase.pods() if name not in (
        "none", # which Istio's plugin refuses
        "regular", "hold", "probed", "host")] # which are like others to a plugin
    pods = make(phase, image, names, sides, "istio-validation")
    captured_like_the_reference(phase, pods, list(sides))
    compare(phase, pods, list(sides), prefix="both plugins: ")
    listeners(phase, pods, list(sides), prefix="both plugins: ")
    # ---- the order in which Istio's agent installs its own where Sidetrack's is there before
    run(program, "cni", "uninstall")
    install_istio(image)
    checks.check("Istio's agent leaves: its plugin goes", differs(plugins(), ["bridge"]))
    install("Sidetrack before Istio's agent")
    install_istio(image, *with_agent)
    checks.check("Istio's agent comes after Sidetrack: its plugin is the last", differs(plugins(), ["bridge", "sidetrack-cni", "istio-cni"]))
    checks.check("Istio's agent comes after Sidetrack: cni status says so", says(["last"], exit_code(program, "cni", "status"), 6))
    for side, template in sides.items():
        kubectl("--namespace", side, "delete", "pods", "client", "web", "--wait")
        apply([objects.pod(side, name, template) for name in ("client", "web")])
    late = {key: pod for key, pod in ready_pods(sides).items() if key[1] in ("client", "web")}
    captured_like_the_reference(phase, late, list(sides))
    compare(phase, late, list(sides), prefix="Istio's agent comes after Sidetrack: ")
    install("cni install once more")
    checks.check("cni install once more: Sidetrack's is the last again", differs(plugins(), ["bridge", "istio-cni", "sidetrack-cni"]))
    run(program, "cni", "uninstall")
    install_istio(image)


def phase_kubectl(phase, image, _):
    """kubectl-sidetrack, as from a laptop."""
    checks = phase.checks
    apply([objects.namespace("laptop")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "laptop"))
    apply(objects.mesh("laptop", []))
    refuses_root = objects.pod("laptop", "web")
    refuses_root["metadata"]["name"] = "refuses-root"
    refuses_root["spec"]["securityContext"] = {"runAsNonRoot": True, "runAsUser": 1000}
    commas = objects.pod("laptop", "web") # a value that a list of NAME=VALUE would take apart
    commas["metadata"]["name"] = "commas"
    commas["metadata"]["annotations"]["proxy.istio.io/config"] = "proxyMetadata: {OTEL_RESOURCE_ATTRIBUTES: 'team=shop,INVALID_DROP=true'}"
    bare = objects.pod("laptop", "web")
    bare["metadata"] |= {"name": "bare", "labels": {"sidecar.istio.io/inject": "false"}}
    apply([objects.pod("laptop", name) for name in ("client", "tproxy", "web")] + [refuses_root, commas, bare])
    ready_pods(["laptop"])

    def said(arguments):
        """The exit code of `kubectl sidetrack`, and what it prints."""
        environment = {**os.environ, "PATH": f"{HERE.parents[1] / 'container'}:{os.environ['PATH']}", "SIDETRACK_IMAGE": ""}
        done = subprocess.run(("kubectl", "sidetrack", *arguments), env=environment, capture_output=True, text=True, timeout=180, check=False)
        return done.returncode, done.stdout + done.stderr

    pod = ("--namespace", "laptop")
    asked = [ # what, the exit code, words of the output, the arguments
        ("show tells the rules", 0, ["ISTIO_INBOUND", "15006"], *pod, "show", "web"),
        ("explain follows a packet", 0, ["lands on 127.0.0.1:15001"], *pod, "explain", "web", "out", "tcp", "10.96.0.10:443", "--uid", "1000"),
        ("map says it of all packets", 0, ["outbound tcp", "127.0.0.1:15001"], *pod, "map", "web"),
        ("verify --as-init: as requested", 0, ["as requested"], *pod, "verify", "--as-init", "web"),
        ("verify --as-init of a pod with TPROXY", 0, ["as requested"], *pod, "--as-init", "verify", "tproxy"),
        ("verify --as-init of a pod with DNS capture", 0, ["as requested"], *pod, "--as-init", "verify", "client"),
        ("verify --as-init of a pod whose variables have commas", 0, ["as requested"], *pod, "--as-init", "verify", "commas"),
        ("a time-out may begin with 0", 0, ["ISTIO_INBOUND"], *pod, "--timeout", "0099", "show", "web"),
        ("a time-out of 0 is refused", 2, ["'00'", "expected a number of seconds"], *pod, "--timeout", "00", "show", "web"),
        ("a pod without istio-init needs an image", 2, ["expected --image"], *pod, "show", "bare"),
        ("and with it is answered", 0, ["no rules"], *pod, "--image", image, "show", "bare"),
        ("verify with other options ends with 6", 6, ["ISTIO_"], *pod, "verify", "--as-init", "web", "-o", "22"),
        ("lint --as-init", 0, [], *pod, "lint", "--as-init", "web"),
        ("kubectl's options behind the pod are refused", 2, ["expected before the command"], "show", "web", "-n", "laptop"),
        ("a pod that refuses root", 0, ["ISTIO_INBOUND"], "-n", "laptop", "show", "refuses-root"),
        ("another context is passed on", 1, ["nowhere"], *pod, "--context", "nowhere", "show", "web"),
        ("a pod that is not there", 1, ["none-such"], *pod, "show", "none-such"),
        ("an image that is not there", 1, ["localhost/none-such:1", "ImagePull"], *pod, "--image", "localhost/none-such:1", "show", "web"),
        ("an argument of sidetrack that is wrong", 2, ["70000"], *pod, "verify", "web", "-p", "70000"),
        ("a command that changes rules", 2, ["'clean'", "expected"], *pod, "clean", "web"),
        ("an option that is none", 2, ["'--frob'"], *pod, "--frob", "show", "web"),
        ("no pod", 2, ["expected the name of a pod"], *pod, "show"),
    ]
    with concurrent.futures.ThreadPoolExecutor() as workers: # they mostly wait for the kubelet
        for (what, code, words, *_), (got, text) in zip(asked, workers.map(said, (arguments for _, _, _, *arguments in asked))):
            missing = [word for word in words if word not in text]
            checks.check(f"kubectl sidetrack: {what}", f"exit code {got}, expected {code}; missing: {missing}\n{text}" if got != code or missing else "")


def phase_gateways(phase, _, program):
    """Pods that istiod makes of a Gateway: one at the edge and a waypoint. Nobody captures them."""
    checks = phase.checks
    kubectl("apply", "--server-side", "-f", str(MESH / "istio/gateway-api"))
    set_variable("PILOT_ENABLE_AMBIENT=true") # without it, istiod makes no waypoints
    apply([objects.namespace("gateways")])
    names = {"edge": "istio", "waypoint": "istio-waypoint"}
    apply([objects.gateway("gateways", name, gateway_class) for name, gateway_class in names.items()])

    def are_left_alone(when):
        def both():
            """both pods are there, and the one at the edge is ready"""
            found = [each for each in get("pods", "--namespace", "gateways")["items"] if "deletionTimestamp" not in each["metadata"]]
            ready = all(is_ready(each) for each in found if each["metadata"]["name"].startswith("edge"))
            return len(found) == len(names) and ready and all(each["status"].get("podIPs") for each in found) and found
        for pod in map(Pod, eventually(120, both)):
            name = next(each for each in names if pod.name.startswith(each))
            pod.network = network_of(pod.addresses[0])
            checks.check(f"{when}{name}, a pod of a Gateway: has no rules", differs(rules_of(pod), []))
            if name == "waypoint":
                print(f"NOT RUN: {when}{name}: its connections: the Envoy of PyPI lacks what a waypoint needs")
                continue
            checks.check(f"{when}{name}, a pod of a Gateway: its own connections are not captured", differs(
                pod.client("http", f"http://{WORLD}:8000/").get("said"), f"world {WORLD}:8000 from {pod.addresses[0]}"))

    are_left_alone("")
    run(program, "cni", "install", "--exclude-namespaces", "kube-system,istio-system")
    kubectl("delete", "pods", "--all", "--namespace", "gateways")
    are_left_alone("CNI: ")
    run(program, "cni", "uninstall")
    set_variable("PILOT_ENABLE_AMBIENT-")


def change_config_map(image):
    """Runs the command of docs/upgrade.md for that image."""
    page = (HERE.parents[1] / "docs/upgrade.md").read_text().splitlines()
    to, back = (line for line in page if line.startswith("    kubectl") and "proxy_init.image" in line)
    run("bash", "-c", "set -o pipefail; " + (back if image == "proxyv2" else to.replace("REGISTRY/sidetrack:0.2.0", image)))


def phase_upgrade(phase, image, _):
    """From the reference's init container to Sidetrack and back, each way that Istio has, while a client sends."""
    checks = phase.checks
    apply([objects.namespace("roll")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "roll"))
    apply(objects.mesh("roll", ["web"]))
    set_values(global__proxy_init__image="proxyv2")
    deployments = {"web": 2, "other": 1}
    helm = os.environ.get("SIDETRACK_HELM")

    def injects_image(expected):
        """istiod injects the changed image"""
        return first_container(objects.pod("roll", "client"))["image"] == expected

    def rolled_out(expected):
        """Restarts the deployments; all their pods have the image then."""
        eventually(60, lambda: injects_image(expected))
        kubectl("--namespace", "roll", "rollout", "restart", *(f"deployment/{name}" for name in deployments))
        for name in deployments:
            kubectl("--namespace", "roll", "rollout", "status", f"deployment/{name}", "--timeout=150s")
        images = {each["spec"]["initContainers"][0]["image"] for each in get("pods", "--namespace", "roll")["items"]
                  if each["metadata"]["labels"]["app"] in deployments and "deletionTimestamp" not in each["metadata"]}
        if problem := differs(images, {expected}):
            raise RuntimeError(problem)

    config_before = mesh_config()
    eventually(60, lambda: injects_image(REFERENCE))
    apply([objects.deployment("roll", name, replicas) for name, replicas in deployments.items()] + [objects.pod("roll", "client")])
    pods = ready_pods(["roll"])
    running = NODE / "load"
    running.touch()
    with concurrent.futures.ThreadPoolExecutor() as workers:
        loads = [workers.submit(pods["roll", "client"].client, "load", "http://web.roll.svc.cluster.local/load", str(running)) for _ in range(3)]
        try:
            checks.attempt("upgrade: by the ConfigMap, as docs/upgrade.md says, to Sidetrack", lambda: (change_config_map(image), rolled_out(image)))
            checks.attempt("upgrade: by the ConfigMap, and back", lambda: (change_config_map("proxyv2"), rolled_out(REFERENCE)))
            checks.attempt("upgrade: by an IstioOperator, to Sidetrack", lambda: (install_by_operator(), rolled_out(image)))
            checks.check("upgrade: by an IstioOperator: MeshConfig stays as it was", differs(mesh_config(), config_before))
            checks.attempt("upgrade: by an IstioOperator, and back", lambda: (install_istio(REFERENCE), rolled_out(REFERENCE)))
            if helm:
                checks.attempt("upgrade: by Helm's values, to Sidetrack", lambda: (install_by_helm(helm, image), rolled_out(image)))
                checks.attempt("upgrade: by Helm's values, and back", lambda: (install_by_helm(helm, REFERENCE), rolled_out(REFERENCE)))
        finally:
            running.unlink()
        results = [each.result() for each in loads]
    total = sum(sum(each.values()) for each in results)
    seen = {code for each in results for code in each}
    checks.check(f"upgrade: none of {total} requests failed meanwhile", differs(seen, {"200"}) and f"{differs(seen, {'200'})}: {results}")
    if not helm:
        print("NOT RUN: upgrade: by Helm's values, which scripts/test istio has not built: SIDETRACK_HELM is not set")
    run("kubectl", "delete", "secrets", "--namespace", "istio-system", "--selector", "owner=helm")
    install_istio(image)


PHASES = {"init": phase_init, "life": phase_life, "uid": phase_uid, "nft": phase_nft, "gateways": phase_gateways, "cni": phase_cni, "plugins": phase_plugins,
          "chart": phase_chart, "kubectl": phase_kubectl, "upgrade": phase_upgrade, "ambient": phase_ambient}


def remove_namespaces(wait):
    """Those of a phase. Each agent has descriptors of inotify, of which a machine allows a user 128: so wait where there are many."""
    run("kubectl", "delete", "namespaces", "--selector", "sidetrack-test=yes", *(["--timeout=300s"] if wait else ["--wait=false"]), timeout=330)


def phase_bench(phase, image, _):
    """Measures; nothing is checked."""
    reference = pathlib.Path((CONTROL / "mesh-images").read_text().strip()) / "proxyv2.tar"
    bench.bench({"reference": REFERENCE, "sidetrack": image},
                {"reference": reference, "sidetrack": CONTROL / "image/sidetrack.oci.tar"}, phase.pods_to_measure)


ASKED = {"bench": phase_bench} # run by name alone
LONG = {"life", "uid", "nft", "gateways", "plugins", "chart", "upgrade", "ambient"} # left out of the short form
