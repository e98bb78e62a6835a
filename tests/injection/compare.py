"""Compares what `args` says with what Istio's injector writes; run by ./run.

compare.py random PROGRAM ISTIOCTL WORK: random pods, with random Helm values for each hundred of them.
compare.py operators PROGRAM ISTIOCTL WORK: a pod where random IstioOperators installed Istio.
compare.py reference PROGRAM FOLDER WORK: the inputs and outputs of Istio's own tests, in its folder pkg/kube/inject.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PODS_OF_VALUES = 100
REFUSED = "refused"


def documents(text):
    for document in yaml.load_all(text, Loader=LOADER):
        for item in document["items"] if document and document.get("kind") == "List" else [document]:
            if item:
                yield item


def template(document):
    """The pod of an object: what has its spec."""
    spec = document.get("spec") or {}
    spec = spec["jobTemplate"]["spec"] if document["kind"] == "CronJob" else spec
    return document if document["kind"] == "Pod" else spec.get("template", {})


def written(text):
    """The arguments of istio-init, or of istio-validation, by the kind and name of the object."""
    found = {}
    for document in documents(text):
        containers = template(document).get("spec", {}).get("initContainers") or []
        by_name = {container["name"]: container.get("args", []) for container in containers}
        args = by_name.get("istio-init") or by_name.get("istio-validation") or []
        found[document["kind"], document["metadata"].get("name", "")] = args[args[:1] == ["istio-iptables"]:] or None
    return found


def said(program, *options):
    """The same by `args`, or why it refuses."""
    ran = subprocess.run([program, "args", "--json", *options], capture_output=True, text=True)
    if ran.returncode == 2:
        return REFUSED, ran.stderr
    if ran.returncode != 0:
        raise SystemExit(f"FAILED: args ended with {ran.returncode}: {ran.stderr}")
    pods = json.loads(ran.stdout)["pods"]
    return {(pod["kind"], pod["name"]): pod["args"] if pod["inject"] else None for pod in pods}, ran.stderr


# ---- Random pods.

PORTS = ["", "*", "80", "80,443", " 80 , 443", "80,", ",", "0", "080", "65535", "65536", "80-90", "http", "80\n", "\n", "+80", "-1", "15020",
         "443,15020", "15021", "1e3", "80;443", "9000, 15020", "\v80", "80\f", "80\r", "80\r\n,81", "\u00a080,\u200381", "80\u2028", "\u0085"]
RANGES = ["", "*", "10.0.0.0/8", "10.0.0.0", "10.1.2.3/8,172.16.0.0/12", "10.0.0.0/8, 172.16.0.0/12", "10.0.0.0/33", "fd00::/8", "::/0",
          "10.0.0.0/08", "0.0.0.0/0", "*,10.0.0.0/8", "10.0.0.0/8,", "::ffff:10.0.0.0/104", "fe80::1%eth0/64", "010.0.0.0/8", "a/8", "/8",
          "10.0.0.0/", "127.0.0.1/32", "fd00::/0129"]
INTERFACES = ["", "eth0", "eth0,net1", " eth0", "eth0, net1", "0eth", "eth0,", "abcdefghijklmnop", "net+", "net1\n", "eth0.100", "a/b", "*"]
QUANTITIES = ["100m", "1", "1Gi", "", "x", "1.5", "2e3", "1e", ".5", "-1", "1 Gi", "1Zi", "5E", "1\n"]
NUMBERS = ["1", "0", "-1", "x", "", "4294967296", "10"]
LEVELS = ["debug", "default:info,ads:debug", "", "loud", "a: b", "a:", "a #b", "- a", "{a}", "a'b", 'a"b', "a\\bc", "a\nb", "a\tb", "*a", "\x01"]
VOLUMES = ["{}", "[]", "null", "", "x", "5", '"a"', '{"a": {}}', '{"a": {"emptyDir": {}}}', '[{"name": "a"}]', "[5]", '{"a": null}', "{} x"]
WORDS = ["true", "false", "True", "False", "yes", "no", "", "1", "0", "enabled"]
TRAFFIC = "traffic.sidecar.istio.io/"
VALUES = {
    "sidecar.istio.io/interceptionMode": ["REDIRECT", "TPROXY", "NONE", "", "tproxy", "REDIRECT ", "redirect"],
    "status.sidecar.istio.io/port": ["15020", "0", "", "15021", "123", "http", "65536", " 123", "123\n", "00", "-5"],
    TRAFFIC + "includeOutboundIPRanges": RANGES,
    TRAFFIC + "excludeOutboundIPRanges": RANGES,
    TRAFFIC + "includeInboundPorts": PORTS,
    TRAFFIC + "excludeInboundPorts": PORTS,
    TRAFFIC + "excludeOutboundPorts": PORTS,
    TRAFFIC + "includeOutboundPorts": PORTS + ["any thing", "a\n\nb", " ", "@/etc/passwd"],
    TRAFFIC + "excludeInterfaces": INTERFACES,
    TRAFFIC + "kubevirtInterfaces": INTERFACES,
    "istio.io/reroute-virtual-interfaces": INTERFACES,
    "sidecar.istio.io/agentLogLevel": LEVELS,
    "sidecar.istio.io/logLevel": LEVELS,
    "sidecar.istio.io/componentLogLevel": LEVELS,
    "sidecar.istio.io/userVolume": VOLUMES,
    "sidecar.istio.io/userVolumeMount": VOLUMES,
    "proxy.istio.io/overrides": [
        "{}", "null", "[]", "", '{"initContainers": 5}', '{"containers": [{"name": "istio-proxy", "securityContext": {"runAsUser": 55}}]}',
        '{"initContainers": [{"name": "istio-init", "args": ["istio-iptables", "-p", "5", "-u", "6"]}]}',
        '{"InitContainers": [{"name": "istio-init", "Args": ["-z", "8"]}]}', '{"initContainers": [{"name": "istio-init", "image": "x"}]}',
        '{"initContainers": [{"name": "istio-validation", "args": ["-p", "7"]}]}', '{"initContainers": [{"name": "istio-init", "args": [5]}]}'],
    "sidecar.istio.io/inject": WORDS,
    "inject.istio.io/templates": ["sidecar", "gateway", "grpc-agent", "grpc-simple", "sidecar, gateway", " sidecar ", "", "sidecar,", " "],
    "sidecar.istio.io/proxyCPU": QUANTITIES,
    "sidecar.istio.io/proxyMemoryLimit": QUANTITIES,
    "readiness.status.sidecar.istio.io/periodSeconds": NUMBERS,
    "prometheus.istio.io/merge-metrics": WORDS,
    "sidecar.istio.io/nativeSidecar": ["true", "false", "x", ""],
    "sidecar.istio.io/rewriteAppHTTPProbers": ["true", "false"],
    "sidetrack/exclude-uids": ["5", "x"],
    "proxy.istio.io/config": [
        "interceptionMode: TPROXY", "interceptionMode: NONE", "interceptionMode: tproxy", "interceptionmode: TPROXY", "interception_mode: TPROXY", "{}",
        'proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true"}', "proxyMetadata: {ISTIO_META_DNS_CAPTURE: true}", "proxyMetadata: {A: 5}",
        "proxyMetadata: {ISTIO_DUAL_STACK: maybe}", "holdApplicationUntilProxyStarts: true", "hold_application_until_proxy_starts: true",
        "interceptionMode: 9", "interceptionMode: 1.0", "interceptionMode: 1.5", "interceptionMode: -1", "proxyMetadata: {A: 'x\"y'}",
        "proxyMetadata: {5: x}", "concurrency: 2", "unknown: 1", "a: [", "- a", "proxy_metadata: {A: b}", "proxyMetadata: {A: null}", "statusPort: 123"],
    "example.com/other": ["x"],
}
# What most pods have: values that are right, so that not every pod is refused for one of many.
USUAL = {name: [value for value in values if value in (
    "80", "80,443", "*", "10.0.0.0/8", "10.1.2.3/8,172.16.0.0/12", "eth0", "eth0,net1", "100m", "1Gi", "10", "true", "sidecar", "REDIRECT",
    "TPROXY", "123", "0", "debug", "", "interceptionMode: TPROXY", " 80 , 443", "080", "443,15020", "9000, 15020", "80\n")]
         for name, values in VALUES.items()}
for name in ("sidecar.istio.io/userVolume", "sidecar.istio.io/userVolumeMount", "proxy.istio.io/overrides", "inject.istio.io/templates"):
    USUAL[name] = VALUES[name][:1]
KINDS = ["Pod", "Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet", "ReplicationController"]
API = {"Pod": "v1", "Job": "batch/v1", "ReplicationController": "v1"}


def random_pod(number):
    strict = random.random() < 0.6
    annotations = {}
    for name in random.sample(sorted(VALUES), random.choice([0, 1, 1, 2, 3, 4])):
        values = USUAL[name] if strict and USUAL[name] else VALUES[name]
        annotations[name] = random.choice(values)
    if strict and random.random() < 0.9:
        annotations.pop("inject.istio.io/templates", None)
        annotations.pop("sidecar.istio.io/inject", None)
    metadata = {"labels": {"app": "web"}, "annotations": annotations}
    if random.random() < 0.1:
        metadata["labels"]["sidecar.istio.io/inject"] = random.choice(WORDS)
    containers = [{"name": "web", "image": "web"}]
    spec = {"containers": containers}
    if random.random() < 0.15:
        proxy = {"name": "istio-proxy", "image": "auto"}
        if random.random() < 0.7:
            proxy["securityContext"] = {"runAsUser": random.choice([0, 1337, 2000, 65534])}
        spec[random.choice(["containers", "initContainers"])] = containers + [proxy]
        spec["containers"] = spec.get("containers") or containers
    if random.random() < 0.05:
        spec.setdefault("initContainers", [])
        spec["initContainers"] = [{"name": "istio-init", "image": "mine"}, *spec["initContainers"]]
    if random.random() < 0.05:
        own = {"name": random.choice(["istio-init", "istio-validation"]), "image": "mine", "args": ["istio-iptables", "-p", "5", "-u", "6"]}
        spec["initContainers"] = [own, *(each for each in spec.get("initContainers", []) if each["name"] != own["name"])]
    if "initContainers" in spec:
        names = {container["name"] for container in spec["initContainers"]}
        spec["containers"] = [container for container in spec["containers"] if container["name"] not in names] or [
            {"name": "app", "image": "app"}]
    if random.random() < 0.05:
        spec["hostNetwork"] = random.choice([True, False])
    kind = random.choice(KINDS)
    made = {"apiVersion": API.get(kind, "apps/v1"), "kind": kind, "metadata": {"name": f"web{number}"}}
    if kind == "Pod":
        made["metadata"].update(metadata)
        made["spec"] = spec
        # kube-inject looks for the namespace of a Deployment in its template, where none has it.
        if random.random() < 0.3:
            made["metadata"]["namespace"] = random.choice(["shop", "kube-system", "kube-public", "local-path-storage"])
    else:
        made["spec"] = {"template": {"metadata": metadata, "spec": spec}}
        if kind != "Job" and kind != "ReplicationController":
            made["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    return made


# By the name of `--set`: the values, and whether it is one of the mesh's configuration.
HELM = {
    "global.proxy.includeIPRanges": ["10.0.0.0/8", "*", ""],
    "global.proxy.excludeIPRanges": ["10.96.0.1/24", ""],
    "global.proxy.includeInboundPorts": ["80", "*", ""],
    "global.proxy.excludeInboundPorts": ["4,5", "", "a"],
    "global.proxy.includeOutboundPorts": ["5432", "", "a"],
    "global.proxy.excludeOutboundPorts": ["22,25", ""],
    "global.proxy.statusPort": [0, 123, 15020],
    "global.logging.level": ["default:debug", "default:info"],
    "global.logAsJson": [True, False],
    "global.nativeNftables": [True, False],
    "pilot.cni.enabled": [True, False],
    "global.proxy_init.forceApplyIptables": [True, False],
    "meshConfig.proxyListenPort": [16001],
    "meshConfig.proxyInboundListenPort": [16006, 0],
    "meshConfig.defaultConfig.interceptionMode": ["TPROXY", "REDIRECT", "NONE", 1, 9],
    "meshConfig.defaultConfig.proxyMetadata": [{"ISTIO_META_DNS_CAPTURE": "true"}],
}


def put(mapping, name, value):
    *folders, last = name.split(".")
    for folder in folders:
        mapping = mapping.setdefault(folder, {})
    mapping[last] = value


class Reference:
    """Istio's injector with some Helm values, offline."""

    def __init__(self, istioctl, work, *options):
        self.istioctl = istioctl
        self.work = work
        generated = subprocess.run([istioctl, "manifest", "generate", *options], capture_output=True, text=True, check=True).stdout
        maps = {item["metadata"]["name"]: item["data"] for item in documents(generated) if item["kind"] == "ConfigMap"}
        (work / "config").write_text(maps["istio-sidecar-injector"]["config"])
        self.values = json.loads(maps["istio-sidecar-injector"]["values"])
        self.mesh = yaml.load(maps["istio"]["mesh"], Loader=LOADER)
        (work / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "none", "users": [{"name": "none", "user": {}}],
            "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}]}))
        self.set({})

    def set(self, helm):
        values, mesh = json.loads(json.dumps(self.values)), json.loads(json.dumps(self.mesh))
        for name, value in helm.items():
            is_of_mesh = name.startswith("meshConfig.")
            put(mesh if is_of_mesh else values, name.removeprefix("meshConfig."), value)
        (self.work / "values").write_text(json.dumps(values))
        (self.work / "mesh").write_text(yaml.safe_dump(mesh))

    def inject(self, pods):
        """The arguments of each, by kind and name; REFUSED if it refuses one of them."""
        (self.work / "pods").write_text("\n---\n".join(json.dumps(pod) for pod in pods))
        files = {"filename": "pods", "injectConfigFile": "config", "meshConfigFile": "mesh", "valuesFile": "values"}
        ran = subprocess.run(
            [self.istioctl, "kube-inject", "--revision", "default", *(f"--{name}={self.work / file}" for name, file in files.items())],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, env={"KUBECONFIG": str(self.work / "kubeconfig"), "HOME": "/"})
        return written(ran.stdout) if ran.returncode == 0 else (REFUSED, ran.stderr)

    def each(self, pods):
        """The same of each alone, in as few calls as it takes."""
        answer = self.inject(pods) if pods else {}
        if isinstance(answer, dict):
            return answer
        if len(pods) == 1:
            return {(pods[0]["kind"], pods[0]["metadata"]["name"]): answer}
        half = len(pods) // 2
        return {**self.each(pods[:half]), **self.each(pods[half:])}


def is_refused(answer):
    return isinstance(answer, tuple)


def compare_random(program, istioctl, work):
    seed = int(os.environ.get("SIDETRACK_SEED") or 20)
    count = int(os.environ.get("SIDETRACK_PODS") or 200)
    random.seed(seed)
    reference = Reference(istioctl, work)
    counts = {"captured": 0, "left alone": 0, "refused": 0}
    different = 0
    for first in range(0, count, PODS_OF_VALUES):
        helm = {} if first == 0 else {name: random.choice(HELM[name]) for name in random.sample(sorted(HELM), random.randint(0, 5))}
        reference.set(helm)
        values = {}
        for name, value in helm.items():
            put(values, name, value)
        (work / "helm").write_text(json.dumps(values))
        pods = [random_pod(number) for number in range(first, min(first + PODS_OF_VALUES, count))]
        ours = {}
        for pod in pods:
            (work / "pod").write_text(json.dumps(pod))
            answer, why = said(program, "-f", str(work / "pod"), "--values", str(work / "helm"))
            key = pod["kind"], pod["metadata"]["name"]
            ours[key] = (REFUSED, why) if answer == REFUSED else answer[key]
        # Those of one answer together: a pod that is refused takes the file with it.
        split = [[pod for pod in pods if is_refused(ours[pod["kind"], pod["metadata"]["name"]]) == refused] for refused in (False, True)]
        theirs = reference.each(split[0])
        for pod in split[1]:
            theirs.update(reference.each([pod]))
        for pod in pods:
            key = pod["kind"], pod["metadata"]["name"]
            one, other = ours[key], theirs[key]
            counts["refused" if is_refused(other) else "captured" if other else "left alone"] += 1
            if one == other or (is_refused(one) and is_refused(other)):
                continue
            # kube-inject reads this before it looks whether the pod is to be injected, the webhook after that.
            if one is None and is_refused(other) and "could not parse proxy config" in other[1]:
                continue
            different += 1
            print(f"FAILED: {json.dumps(pod)}\n  Helm values {json.dumps(helm)}\n  args:  {one}\n  Istio: {other}")
    print(f"{count} random pods, seed {seed}: {', '.join(f'{number} {what}' for what, number in counts.items())}; {different} different")
    if count >= 200 and min(counts.values()) < count // 20:
        different += 1
        print("FAILED: too few pods of one kind")
    return different == 0


# ---- IstioOperators.

# By the place in the spec: the values. kube-inject asks neither for default templates nor for selectors of labels.
OPERATOR = {
    "profile": ["default", "demo", "minimal", "ambient", "openshift", "openshift-ambient", "preview", "stable"],
    "components.cni.enabled": [True, False],
    "meshConfig.proxyListenPort": [16001],
    "meshConfig.defaultConfig.interceptionMode": ["TPROXY"],
    "values.meshConfig.proxyListenPort": [16002],
    "values.meshConfig.proxyInboundListenPort": [16003],
    "values.pilot.cni.enabled": [True, False],
    "values.profile": ["ambient", "preview"],
    "values.global.platform": ["openshift", "gke"],
    "values.global.proxy.includeIPRanges": ["10.0.0.0/8"],
    "unvalidatedValues.meshConfig.proxyListenPort": [16004],
    "unvalidatedValues.pilot.cni.enabled": [True, False],
    "unvalidatedValues.global.logAsJson": [True],
}


def compare_operators(program, istioctl, work):
    seed = int(os.environ.get("SIDETRACK_SEED") or 20)
    count = int(os.environ.get("SIDETRACK_OPERATORS") or 12)
    random.seed(seed)
    different = 0
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    (work / "pod").write_text(json.dumps(pod))
    for _ in range(count):
        spec = {}
        for place in random.sample(sorted(OPERATOR), random.randint(1, 5)):
            put(spec, place, random.choice(OPERATOR[place]))
        operator = work / "operator"
        operator.write_text(json.dumps({"apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator", "spec": spec}))
        theirs = Reference(istioctl, work, "--force", "-f", str(operator)).inject([pod])
        ours, why = said(program, "-f", str(work / "pod"), "--values", str(operator))
        if ours != theirs:
            different += 1
            print(f"FAILED: {json.dumps(spec)}\n  args:  {ours} {why}\n  Istio: {theirs}")
    print(f"{count} IstioOperators, seed {seed}; {different} different")
    return different == 0


# ---- Istio's own test data.

def cases(folder):
    """Its table in inject_test.go, and every input that is not in it."""
    source = (folder / "inject_test.go").read_text()
    table = source[source.index("cases := []testCase{"):source.index("// Keep track of tests we add")]
    found = []
    for text in re.findall(r"\n\t\t\{\n(.*?)\n\t\t\},", table, re.DOTALL):
        field = lambda name: (re.findall(rf'\b{name}:\s*"([^"]*)"', text) or [""])[0]
        flags = re.search(r"setFlags: \[\]string\{(.*?)\}", text, re.DOTALL)
        mode = re.search(r"InterceptionMode = meshapi.ProxyConfig_(\w+)", text)
        found.append({"in": field("in"), "want": field("want"), "file": field("inFilePath"), "error": field("expectedError"),
                      "set": re.findall(r'[`"](.+?)[`"]', flags[1]) if flags else [], "mode": mode[1] if mode else "",
                      "openshift": "OpenShift" in text})
    known = {case["want"] or case["in"] + ".injected" for case in found}
    for file in sorted((folder / "testdata/inject").glob("*.yaml")):
        want = file.name + ".injected"
        if not file.name.endswith(".iop.yaml") and want not in known:
            found.append({"in": file.name, "want": want, "file": "", "error": "", "set": [], "mode": "", "openshift": False})
    return found


def helm_of(case, data):
    values = {}
    if case["file"]:
        spec = yaml.load((data / case["file"]).read_text(), Loader=LOADER)["spec"]
        values = {**spec.get("values", {}), **({"meshConfig": spec["meshConfig"]} if "meshConfig" in spec else {})}
    for flag in case["set"]:
        name, text = flag.split("=", 1)
        name = {"components.cni.enabled": "pilot.cni.enabled"}.get(name, name.removeprefix("values."))
        put(values, name, {"true": True, "false": False}.get(text, text))
    if case["mode"]:
        put(values, "meshConfig.defaultConfig.interceptionMode", case["mode"])
    return values


NAMESPACE = "kind: Namespace\nmetadata: {name: test-ns, annotations: {openshift.io/sa.scc.uid-range: 1000620000/10000}}\n"


def compare_reference(program, folder, work):
    data = folder / "testdata/inject"
    same = outputs = different = 0
    (work / "namespace").write_text(NAMESPACE)
    for case in cases(folder):
        (work / "helm").write_text(json.dumps(helm_of(case, data)))
        options = ["-f", str(data / case["in"]), "--values", str(work / "helm")]
        if case["openshift"]:
            options += ["-f", str(work / "namespace")]
        answer, why = said(program, *options)
        wanted = REFUSED if case["error"] else written((data / case["want"]).read_text())
        if answer != wanted and not (wanted != REFUSED and answer != REFUSED and
                                     answer == {key: args for key, args in wanted.items() if args or key in answer}):
            different += 1
            print(f"FAILED: {case['in']}, {case['want']}\n  args:  {answer} {why}\n  Istio: {wanted}")
            continue
        same += 1
        if wanted == REFUSED:
            continue
        again, why = said(program, "-f", str(data / case["want"]))
        outputs += 1
        for key, args in wanted.items():
            if args and (again == REFUSED or again.get(key) != args):
                different += 1
                print(f"FAILED: {case['want']}\n  args:  {again} {why}\n  Istio: {wanted}")
                break
    print(f"{same} cases of Istio's own tests alike, and {outputs} of their outputs read; {different} different")
    if same < 100:
        different += 1
        print("FAILED: too few cases were found in inject_test.go")
    return different == 0


what, program, of, work = sys.argv[1:]
compare = {"random": compare_random, "operators": compare_operators, "reference": compare_reference}[what]
sys.exit(0 if compare(program, pathlib.Path(of) if what == "reference" else of, pathlib.Path(work)) else 1)
