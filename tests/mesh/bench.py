"""Measures istio-init, the reference's and Sidetrack, by turns; prints tables in Markdown. Run by run.py as its phase "bench"."""
import json
import pathlib
import statistics
import subprocess
import tarfile
import time

import yaml

import objects
from cluster import NODE, apply, eventually, get, kubectl, run

ARGUMENTS = ["istio-iptables", "-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-x", "", "-b", "*",
             "-d", "15090,15021,15020", "--log_output_level=default:info"]
ENDPOINT = f"unix://{NODE}/containerd.sock"


def own_time(name):
    """Milliseconds from the start of istio-init, as `runc start` sets it going, to its end."""
    line = eventually(30, lambda: run("cri", ENDPOINT, "list", name, "istio-init").splitlines())[0].split()
    started = int(pathlib.Path(NODE / "notes" / f"{line[0]}.start").read_text())
    return (int(line[3]) - started) / 1e6


def start_and_wait(pod, condition="Ready", seconds=120):
    """Seconds from `kubectl apply` until the pod is ready, or None if it never is."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    began = time.monotonic()
    kubectl("apply", "-f", "-", data=yaml.safe_dump(pod))
    done = subprocess.run(("kubectl", "wait", f"--for=condition={condition}", f"pod/{name}", "--namespace", namespace, f"--timeout={seconds}s"),
                          capture_output=True, text=True, check=False)
    return time.monotonic() - began if done.returncode == 0 else None


def remove(pod):
    kubectl("delete", "pod", pod["metadata"]["name"], "--namespace", pod["metadata"]["namespace"], "--now")


def alone(image, name, limits):
    """A pod with istio-init and nothing of Istio, so that limits are istio-init's alone."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "bench"}, "spec": {
        "terminationGracePeriodSeconds": 0, "restartPolicy": "Never",
        "initContainers": [{"name": "istio-init", "image": image, "args": ARGUMENTS, "resources": {"limits": limits, "requests": {}},
                            "securityContext": {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False, "allowPrivilegeEscalation": False,
                                                "capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}}}],
        "containers": [{"name": "app", "image": "busybox:1", "command": ["sleep", "3600"]}]}}


def spread(values, unit, digits=0):
    ordered = sorted(values)
    return f"{statistics.median(ordered):.{digits}f} {unit} ({ordered[0]:.{digits}f} to {ordered[-1]:.{digits}f})"


def row(what, *cells):
    print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


def injected_pods(images, count):
    times, own = {name: [] for name in images}, {name: [] for name in images}
    for turn in range(count):
        for name in images:
            pod = objects.pod("bench", "web", None if name == "sidetrack" else "reference")
            pod["metadata"]["name"] = f"web-{name}-{turn}"
            times[name].append(start_and_wait(pod))
            own[name].append(own_time(pod["metadata"]["name"]))
            remove(pod)
    row("`kubectl apply` to Ready, with a native sidecar, no limit", *(spread(times[name], "s", 1) for name in images))
    row("istio-init itself, no limit", *(spread(own[name], "ms") for name in images))


def limited(images, count):
    for limit in ("100m", "50m", "10m"):
        own, times = {name: [] for name in images}, {name: [] for name in images}
        for turn in range(count):
            for name, image in images.items():
                pod = alone(image, f"{name}-{limit}-{turn}", {"cpu": limit})
                times[name].append(start_and_wait(pod))
                own[name].append(own_time(pod["metadata"]["name"]))
                remove(pod)
        row(f"istio-init itself, CPU limit {limit}", *(spread(own[name], "ms") for name in images))
        row(f"`kubectl apply` to Ready, without a sidecar, CPU limit {limit}", *(spread(times[name], "s", 1) for name in images))


def runs_with(image, name, mebibytes):
    pod = alone(image, f"{name}-{mebibytes}-mi", {"memory": f"{mebibytes}Mi"})
    kubectl("apply", "-f", "-", data=yaml.safe_dump(pod))
    def state():
        """istio-init has ended, or was refused"""
        status = get("pod", pod["metadata"]["name"], "--namespace", "bench")["status"]
        for each in status.get("initContainerStatuses", []):
            if ended := each["state"].get("terminated"):
                return "runs" if ended["exitCode"] == 0 else "ends"
            if each["state"].get("waiting", {}).get("reason", "").endswith("Error"):
                return "refused"
        return None
    said = eventually(120, state)
    remove(pod)
    return said == "runs"


def least_memory(images):
    """The least limit, in whole MiB, with which each ends well three times in a row."""
    found = {}
    for name, image in images.items():
        low, high = 0, 128
        while high - low > 1:
            middle = (low + high) // 2
            if all(runs_with(image, f"{name}-{turn}", middle) for turn in range(3)):
                high = middle
            else:
                low = middle
        found[name] = high
    row("least memory limit that it runs with", *(f"{found[name]} MiB" for name in images))


def image_bytes(archives):
    """What a node pulls: the compressed layers."""
    sizes = []
    for archive in archives.values():
        with tarfile.open(archive) as opened:
            def document(path, opened=opened):
                member = next(each for each in opened.getmembers() if each.name.removeprefix("./") == path)
                return json.load(opened.extractfile(member))
            manifest = document("index.json")
            while "layers" not in manifest:
                manifest = document("blobs/" + manifest["manifests"][0]["digest"].replace(":", "/"))
            sizes.append(sum(layer["size"] for layer in manifest["layers"]))
    row("bytes of the image, compressed", *(f"{size / 1e6:.1f} MB" for size in sizes))


def bench(images, archives, pods):
    apply([objects.namespace("bench")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "bench"))
    apply(objects.mesh("bench", []))
    print(f"\n| {pods} pods each, by turns; median (least to most) | " + " | ".join(images) + " |\n|---|" + "--:|" * len(images))
    # What is not of the mesh has no sidecar: its limits are istio-init's.
    injected_pods(images, pods)
    kubectl("label", "namespace", "bench", "istio-injection-", "--overwrite")
    limited(images, pods)
    least_memory(images)
    image_bytes(archives)
    print()
