#!/usr/bin/env python3
"""Istio's scenarios on the node of scripts/kubernetes:  run.py [--short] [--only PHASE] IMAGE PROGRAM

PHASE: init (istio-init of both), cni, kubectl, upgrade. IMAGE holds the PROGRAM. Prints a line for each thing that is checked."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True # the tree stays as it is

import yaml

import objects
from cluster import HERE, NODE, Checks, apply, differs, eventually, get, kubectl, ready_pods, run
from facts import Names, of_connection, unlike
from scenarios import PODS, SCENARIOS, WORLD, WORLD6

SIDES = {"reference": "reference", "sidetrack": None} # namespace: the template that is injected after Istio's own
VERSION = (HERE / "modules/istio/version").read_text().strip()
INJECTOR = ("configmap", "istio-sidecar-injector", "--namespace", "istio-system")


def in_world(*command):
    return ("ip", "netns", "exec", "world", *command)


def start_world():
    world = subprocess.Popen(in_world("python3", str(HERE / "world.py")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if not world.stdout.readline():
        raise RuntimeError("the host outside of the cluster does not start")
    return world


def install_istio(image):
    operator = (HERE / "istio.yaml").read_text().replace("TAG", VERSION).replace("localhost/sidetrack:VERSION", image)
    (NODE / "istio.yaml").write_text(operator)
    run("istioctl", "install", "--skip-confirmation", "--filename", str(NODE / "istio.yaml"), timeout=300)


def values():
    return json.loads(get(*INJECTOR)["data"]["values"])


def set_values(**paths):
    """Changes values of the injector's ConfigMap, by path, and waits until istiod injects by them: what it writes shows them."""
    changed = values()
    for path, value in paths.items():
        *parents, last = path.split("__")
        place = changed
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    kubectl("patch", *INJECTOR, "--patch", json.dumps({"data": {"values": json.dumps(changed)}}))


def injected(pod):
    """What the API server would make of a pod, under a name that none has."""
    pod["metadata"]["name"] = "none-yet"
    return json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", data=yaml.safe_dump(pod)))


def first_container(pod):
    return injected(pod)["spec"]["initContainers"][0]


class Phase:
    def __init__(self, checks, short):
        self.checks, self.short = checks, short

    def pods(self):
        return [name for name, pod in PODS.items() if pod.get("short") or not self.short]

    def scenarios(self):
        return {name: scenario for name, scenario in SCENARIOS.items() if scenario.get("short") or not self.short}


def names_of(namespace, pods):
    services = {each["metadata"]["name"]: each["spec"]["clusterIP"] for each in get("services", "--namespace", namespace)["items"]}
    return Names(namespace, [pod for (where, _), pod in pods.items() if where == namespace], services)


def fill(text, namespace, scenario, pods, number):
    text = text.replace("{ns}", namespace).replace("{id}", str(number))
    text = text.replace("{server}", scenario.get("server", "")).replace("{client}", scenario.get("client", ""))
    for (where, name), pod in pods.items():
        if where == namespace:
            text = text.replace(f"<{name}>", pod.addresses[0])
            if len(pod.addresses) > 1:
                text = text.replace(f"<{name}/6>", pod.addresses[1])
    return text


def request(namespace, scenario, pods, number):
    """Does what a scenario says, and returns what the client got."""
    if "http" in scenario:
        words = ("http", fill(scenario["http"], namespace, scenario, pods, number))
    elif "tcp" in scenario:
        address, port = scenario["tcp"]
        words = ("tcp", fill(address, namespace, scenario, pods, number), str(port))
    else:
        words = ("dns", *scenario["dns"])
    if scenario.get("from") == "world":
        return json.loads(run(*in_world("python3", str(HERE / "client.py"), *words)))
    return pods[namespace, scenario["client"]].client(*words)


def expectation(scenario, names):
    """What a scenario expects, in the words of the facts."""
    def filled(value):
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items()}
        if isinstance(value, str):
            return names.say(value.replace("{server}", scenario.get("server", "")).replace("{client}", scenario.get("client", "")))
        return names.say(value)
    return {**filled(scenario["expect"]), "out": filled(scenario.get("out")), "into": filled(scenario.get("into"))}


def facts_of(namespace, scenario, pods, names, result, number):
    client = pods.get((namespace, scenario.get("via") or scenario.get("client")))
    server = pods.get((namespace, scenario.get("server")))
    addresses = [WORLD, WORLD6] if scenario.get("from") == "world" else client.addresses
    path = f"/{number}" if "http" in scenario else None
    return of_connection(names, result, client, server, addresses, path)


def compare(phase, pods, sides, not_yet=None, prefix=""):
    """Runs the scenarios in each namespace; prints for each whether the facts are as expected, and the same in all of them."""
    scenarios = {name: each for name, each in phase.scenarios().items()
                 if all(each.get(role) is None or all((side, each[role]) in pods for side in sides) for role in ("client", "server"))}
    names = {side: names_of(side, pods) for side in sides}
    def side_results(side):
        return {name: request(side, scenario, pods, number) for number, (name, scenario) in enumerate(scenarios.items(), 1)}
    with concurrent.futures.ThreadPoolExecutor() as workers:
        results = dict(zip(sides, workers.map(side_results, sides)))
    flushed = time.monotonic() + 3 # Envoy writes its access log once a second: until then nothing in it says nothing
    for number, (name, scenario) in enumerate(scenarios.items(), 1):
        problems, facts = [], {}
        for side in sides:
            expected = expectation(scenario, names[side])
            while True:
                facts[side] = facts_of(side, scenario, pods, names[side], results[side][name], number)
                problem = unlike(facts[side], expected)
                if time.monotonic() > flushed or (not problem and all(facts[side][key] for key in ("out", "into") if expected[key])
                                                  and (expected["out"] or expected["into"])):
                    break
                time.sleep(0.1)
            if problem:
                problems.append(f"{side}: {problem}")
        if "said" not in scenario["expect"]: # it is not the same each time
            for each in facts.values():
                each.pop("said", None)
        if not problems and len(sides) == 2:
            problems.append(differs(facts[sides[1]], facts[sides[0]]))
        phase.checks.check(prefix + name, "\n".join(filter(None, problems)), (not_yet or {}).get(name))


def rules_of(pod):
    """The names of the chains of istio-iptables or Sidetrack in a pod, of all backends."""
    text = "".join(pod.inside(*command) for command in
                   (("nft", "list", "ruleset"), ("iptables-legacy-save",), ("ip6tables-legacy-save",)))
    return sorted({word for word in text.replace(":", " ").split() if word.startswith("ISTIO_") or word == "sidetrack"})


def captured_like_the_reference(phase, pods, sides):
    for name in phase.pods():
        found = {side: bool(rules_of(pods[side, name])) for side in sides if not PODS[name].get("host_network")}
        expected = not (PODS[name].get("gateway") or name in ("none", "plain"))
        if found:
            phase.checks.check(f"{name}: {'has' if expected else 'has no'} rules", "" if set(found.values()) == {expected} else f"rules: {found}")


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


def take_over(pods, program):
    """Each istio-init once more in the pods of the other, as if a container were run again after an upgrade."""
    for (side, _), pod in pods.items():
        if not pod.init_container("istio-init"):
            continue
        words, variables = init_words(pod)
        if side == "reference":
            run("env", *variables, program, "istio-iptables", "--pid", str(pod.process), *words)
        else:
            # It reads the pod's name servers where a container has them.
            servers = NODE / "resolv.conf.of-pod"
            servers.write_bytes(pathlib.Path(f"/proc/{pod.process}/root/etc/resolv.conf").read_bytes())
            run("unshare", "--mount", "nsenter", f"--net=/proc/{pod.process}/ns/net", "sh", "-c",
                f'mount --bind {servers} /etc/resolv.conf && exec env "$@"', "sh", *variables, "pilot-agent", "istio-iptables", *words)


def phase_init(phase, image, program):
    """Each pod twice: with the reference's own istio-init, and with Sidetrack as istio-init."""
    apply([objects.namespace(side) for side in SIDES])
    names = phase.pods()
    for side in SIDES:
        eventually(30, lambda side=side: get("serviceaccount", "default", "--namespace", side))
        apply(objects.mesh(side, names))
    apply([objects.pod(side, name, template) for side, template in SIDES.items() for name in names])
    pods = ready_pods(SIDES)
    images = {side: {each.init_container("istio-init")["image"] for (where, _), each in pods.items()
                     if where == side and each.init_container("istio-init")} for side in SIDES}
    phase.checks.check("istio-init is the reference's in one namespace, and Sidetrack in the other",
                       differs(images, {"reference": {f"localhost/istio/proxyv2:{VERSION}"}, "sidetrack": {image}}))
    captured_like_the_reference(phase, pods, list(SIDES))
    rules_agree(phase, pods, program)
    compare(phase, pods, list(SIDES))
    if not phase.short:
        if phase.checks.attempt("each istio-init is run in the pods of the other", lambda: take_over(pods, program)):
            rules_agree(phase, pods, program)
            compare(phase, pods, list(SIDES), prefix="taken over: ")


def ended(namespace, name, container):
    """How an init container ended last: exit code, and what it said."""
    status = next(each for each in get("pod", name, "--namespace", namespace)["status"].get("initContainerStatuses", []) if each["name"] == container)
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
    checks.check("without the plugin: the message says what to do", "" if "plugin" in said else f"it names no plugin: {said.splitlines()[-1:]}",
                 "the message names the rules that are missing, not the plugin that is to program them")
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
    gateway = "the plugin captures gateway pods"
    dns = "the plugin does not read proxy.istio.io/config"
    compare(phase, pods, ["cni"], {
        "from outside through the gateway": gateway, "a gateway's own connections are not captured": gateway,
        "DNS capture, udp": dns, "DNS capture, tcp": dns, "a ServiceEntry's name, resolved by the agent": dns}, "CNI: ")
    # ---- the pods of the node
    checks.check("CNI: sidetrack pods says that web is as recorded", differs(state_of(program, "cni", "web"), "as_recorded"))
    run(program, "clean", "--pid", str(pods["cni", "web"].process))
    checks.check("CNI: without its rules it differs", differs(state_of(program, "cni", "web"), "differs"))
    run(program, "pods", "--repair", check=False)
    checks.check("CNI: sidetrack pods --repair puts them back", differs(state_of(program, "cni", "web"), "as_recorded"))
    checks.attempt("CNI: a new connection is captured again", lambda: captured_again(pods))
    run(program, "cni", "uninstall")
    kubectl("delete", "namespace", "cni", "--wait=false")
    set_values(pilot__cni__enabled=False)


def captured_again(pods):
    said = pods["cni", "client"].client("http", "http://web.cni.svc.cluster.local/again")
    if said.get("said") != "app web:8080 from 127.0.0.6 mtls":
        raise RuntimeError(str(said))


def phase_kubectl(phase, image, _):
    """kubectl-sidetrack, as from a laptop."""
    checks = phase.checks
    apply([objects.namespace("laptop")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "laptop"))
    apply(objects.mesh("laptop", []))
    refuses_root = objects.pod("laptop", "web")
    refuses_root["metadata"]["name"] = "refuses-root"
    refuses_root["spec"]["securityContext"] = {"runAsNonRoot": True, "runAsUser": 1000}
    apply([objects.pod("laptop", name) for name in ("client", "tproxy", "web")] + [refuses_root])
    ready_pods(["laptop"])

    def says(what, code, words, *arguments):
        """A check of the exit code of `kubectl sidetrack`, and that it says all the words."""
        environment = {**os.environ, "PATH": f"{HERE.parents[1] / 'container'}:{os.environ['PATH']}", "SIDETRACK_IMAGE": image}
        done = subprocess.run(("kubectl", "sidetrack", *arguments), env=environment, capture_output=True, text=True, timeout=180, check=False)
        said = done.stdout + done.stderr
        missing = [word for word in words if word not in said]
        checks.check(f"kubectl sidetrack: {what}", f"exit code {done.returncode}, expected {code}; missing: {missing}\n{said}"
                     if done.returncode != code or missing else "")

    pod = ("--namespace", "laptop")
    says("show tells the rules", 0, ["ISTIO_INBOUND", "15006"], *pod, "show", "web")
    says("explain follows a packet", 0, ["lands on 127.0.0.1:15001"], *pod, "explain", "web", "out", "tcp", "10.96.0.10:443", "--uid", "1000")
    says("map says it of all packets", 0, ["outbound tcp", "127.0.0.1:15001"], *pod, "map", "web")
    says("verify --as-init: as requested", 0, ["as requested"], *pod, "verify", "--as-init", "web")
    says("verify --as-init of a pod with TPROXY", 0, ["as requested"], *pod, "--as-init", "verify", "tproxy")
    says("verify --as-init of a pod with DNS capture", 0, ["as requested"], *pod, "--as-init", "verify", "client")
    says("verify with other options ends with 6", 6, ["ISTIO_"], *pod, "verify", "--as-init", "web", "-o", "22")
    says("lint --as-init", 0, [], *pod, "lint", "--as-init", "web")
    says("a pod that refuses root", 0, ["ISTIO_INBOUND"], "-n", "laptop", "show", "refuses-root")
    says("another context is passed on", 1, ["nowhere"], *pod, "--context", "nowhere", "show", "web")
    says("a pod that is not there", 1, ["none-such"], *pod, "show", "none-such")
    says("an image that is not there", 1, ["localhost/none-such:1", "ImagePull"], *pod, "--image", "localhost/none-such:1", "show", "web")
    says("an argument of sidetrack that is wrong", 2, ["70000"], *pod, "verify", "web", "-p", "70000")
    says("a command that changes rules", 2, ["'clean'", "expected"], *pod, "clean", "web")
    says("an option that is none", 2, ["'--frob'"], *pod, "--frob", "show", "web")
    says("no pod", 2, ["expected the name of a pod"], *pod, "show")
    kubectl("delete", "namespace", "laptop", "--wait=false")


def phase_upgrade(phase, image, _):
    """From the reference's init container to Sidetrack and back, each way that Istio has, while a client sends."""
    checks = phase.checks
    reference = f"localhost/istio/proxyv2:{VERSION}"
    apply([objects.namespace("roll")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "roll"))
    apply(objects.mesh("roll", ["web"]))
    set_values(global__proxy_init__image="proxyv2")
    deployments = {"web": 2, "other": 1}

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

    eventually(60, lambda: injects_image(reference))
    apply([objects.deployment("roll", name, replicas) for name, replicas in deployments.items()] + [objects.pod("roll", "client")])
    pods = ready_pods(["roll"])
    running = NODE / "load"
    running.touch()
    with concurrent.futures.ThreadPoolExecutor() as workers:
        loads = [workers.submit(pods["roll", "client"].client, "load", "http://web.roll.svc.cluster.local/load", str(running)) for _ in range(3)]
        try:
            checks.attempt("upgrade: by the ConfigMap, to Sidetrack", lambda: (set_values(global__proxy_init__image=image), rolled_out(image)))
            checks.attempt("upgrade: by the ConfigMap, and back", lambda: (set_values(global__proxy_init__image="proxyv2"), rolled_out(reference)))
            checks.attempt("upgrade: by an IstioOperator, to Sidetrack", lambda: (install_istio(image), rolled_out(image)))
            checks.attempt("upgrade: by an IstioOperator, and back", lambda: (install_istio(reference), rolled_out(reference)))
        finally:
            running.unlink()
        results = [each.result() for each in loads]
    total = sum(sum(each.values()) for each in results)
    seen = {code for each in results for code in each}
    checks.check(f"upgrade: none of {total} requests failed meanwhile", differs(seen, {"200"}) and f"{differs(seen, {'200'})}: {results}")
    print("NOT RUN: the same by Helm, which is not built here; its values are those of the IstioOperator")
    install_istio(image)
    kubectl("delete", "namespace", "roll", "--wait=false")


PHASES = {"init": phase_init, "cni": phase_cni, "kubectl": phase_kubectl, "upgrade": phase_upgrade}


LONG = {"upgrade"} # left out of the short form


class List(argparse.Action):
    def __call__(self, *_):
        print(*PHASES)
        sys.exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", choices=PHASES)
    parser.add_argument("--list", action=List, nargs=0, help="the phases")
    parser.add_argument("image")
    parser.add_argument("program")
    arguments = parser.parse_args()
    checks = Checks()
    phase = Phase(checks, arguments.short)
    world = start_world()
    started = time.monotonic()
    checks.attempt("istioctl installs Istio", lambda: install_istio(arguments.image))
    print(f"Istio is installed after {time.monotonic() - started:.0f} s")
    for name, action in PHASES.items():
        if arguments.only == name or arguments.only is None and not (arguments.short and name in LONG):
            started = time.monotonic()
            checks.attempt(f"phase {name} runs to its end", lambda action=action: action(phase, arguments.image, arguments.program))
            print(f"phase {name}: {time.monotonic() - started:.0f} s", flush=True)
    world.terminate()
    return 0 if checks.summary() else 1


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    sys.exit(main())
