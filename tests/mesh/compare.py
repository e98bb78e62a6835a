"""Runs the scenarios in several namespaces, and compares what became of each connection."""
import concurrent.futures
import json
import re
import time

from cluster import HERE, differs, get, run
from facts import Names, of_connection, unlike
from mesh import in_world
from scenarios import LISTENERS, PODS, WORLD, WORLD6

CONNECTIONS = 8


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


def settled_request(*arguments):
    """The same; again while istiod has not yet told the client's proxy of the server."""
    end = time.monotonic() + 30
    while True:
        result = request(*arguments)
        if result.get("said") != "no healthy upstream" or time.monotonic() > end:
            return result
        time.sleep(0.2)


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


def compare(phase, pods, sides, prefix="", explained=None):
    """Runs the scenarios in each namespace; prints for each whether the facts are as expected, and the same in all of them.

    explained: those in which the reference differs: what is expected of it, and why."""
    scenarios = {name: each for name, each in phase.scenarios().items()
                 if all(each.get(role) is None or all((side, each[role]) in pods for side in sides) for role in ("client", "server", "via"))}
    names = {side: names_of(side, pods) for side in sides}
    def side_results(side):
        return {name: settled_request(side, scenario, pods, number) for number, (name, scenario) in enumerate(scenarios.items(), 1)}
    with concurrent.futures.ThreadPoolExecutor() as workers:
        results = dict(zip(sides, workers.map(side_results, sides)))
    flushed = time.monotonic() + 3 # Envoy writes its access log once a second: until then nothing in it says nothing
    for number, (name, scenario) in enumerate(scenarios.items(), 1):
        problems, facts = [], {}
        for side in sides:
            other = (explained or {}).get(name, ({}, ""))[0] if side == sides[0] else {}
            expected = expectation(scenario | other, names[side])
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
        label = prefix + name
        if name in (explained or {}):
            label += f" (the reference differs: {explained[name][1]})"
        elif not problems and len(sides) == 2:
            problems.append(differs(facts[sides[1]], facts[sides[0]]))
        phase.checks.check(label, "\n".join(filter(None, problems)))


def taken_by(pod):
    """How many connections each listener of a pod's Envoy has taken."""
    said = pod.inside("pilot-agent", "request", "GET", "stats?filter=^listener.*downstream_cx_total$")
    found = dict(re.findall(r"^listener\.(.+)\.downstream_cx_total: (\d+)$", said, re.MULTILINE))
    if not found:
        raise RuntimeError(f"{pod.name}: its proxy tells of no listener: {said!r}")
    return found


def listeners(phase, pods, sides, prefix=""):
    """Which listeners take the connections of some scenarios; the kubelet's probes come near none of these numbers."""
    for name, role, expected in LISTENERS:
        scenario = phase.scenarios().get(name)
        if not scenario or any(scenario.get(end) and (side, scenario[end]) not in pods for side in sides for end in ("client", "server")):
            continue
        grown = {}
        for side in sides:
            pod = pods[side, scenario[role]]
            before = taken_by(pod)
            for _ in range(CONNECTIONS):
                request(side, scenario, pods, 0)
            grown[side] = [re.sub(r"^10\.96\.[0-9.]+_", "service_", listener) for listener, count in taken_by(pod).items()
                           if int(count) - int(before.get(listener, 0)) >= CONNECTIONS and ".worker_" not in listener]
        phase.checks.check(f"{prefix}{name}: the {role}'s listeners: {', '.join(expected) or 'none'}", differs(grown, dict.fromkeys(sides, expected)))


def rules_of(pod):
    """The names of the chains of istio-iptables or Sidetrack in a pod, of all backends."""
    text = "".join(pod.inside(*command) for command in
                   (("nft", "list", "ruleset"), ("iptables-legacy-save",), ("ip6tables-legacy-save",)))
    return sorted({word for word in text.replace(":", " ").split() if "istio" in word.lower() or word == "sidetrack"})


def captured_like_the_reference(phase, pods, sides):
    for name in (name for name in phase.pods() if all((side, name) in pods for side in sides)):
        found = {side: bool(rules_of(pods[side, name])) for side in sides if not PODS[name].get("host_network")}
        expected = not PODS[name].get("uncaptured")
        if found:
            phase.checks.check(f"{name}: {'has' if expected else 'has no'} rules", "" if set(found.values()) == {expected} else f"rules: {found}")
