"""Istio on the node: how it is installed, what its injector does, and the host outside of the cluster."""
import json
import os
import pathlib
import shutil
import subprocess

import yaml

from cluster import HERE, NODE, eventually, get, kubectl, run

CONTROL = pathlib.Path(os.environ.get("SIDETRACK_NODE", "/tmp/sidetrack-node")) # the node's control folder
MESH = pathlib.Path(shutil.which("kubelet") or ".").parent # what scripts/kubernetes/build has made
VERSION = (HERE / "modules/istio/version").read_text().strip()
REFERENCE = f"localhost/istio/proxyv2:{VERSION}"
INJECTOR = ("configmap", "istio-sidecar-injector", "--namespace", "istio-system")


def in_world(*command):
    return ("ip", "netns", "exec", "world", *command)


def start_world():
    world = subprocess.Popen(in_world("python3", str(HERE / "world.py")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if not world.stdout.readline():
        raise RuntimeError("the host outside of the cluster does not start")
    return world


def import_image(name):
    """An image that not every node needs."""
    archive = pathlib.Path((CONTROL / "mesh-images").read_text().strip()) / "more" / f"{name}.tar"
    run("ctr", "--namespace", "k8s.io", "images", "import", str(archive))


def install_istio(image, *settings):
    """As istio.yaml says, but for what is set here (PATH=VALUE)."""
    operator = (HERE / "istio.yaml").read_text().replace("TAG", VERSION).replace("localhost/sidetrack:VERSION", image)
    (NODE / "istio.yaml").write_text(operator)
    run("istioctl", "install", "--skip-confirmation", "--filename", str(NODE / "istio.yaml"), *(f"--set={each}" for each in settings), timeout=300)
    wait_for_istiod()


def mesh_config():
    return get("configmap", "istio", "--namespace", "istio-system")["data"]["mesh"]


def install_by_operator():
    """The reference's istio.yaml, and after it container/istio-operator.yaml, as that says."""
    install_istio(REFERENCE)
    run("istioctl", "install", "--skip-confirmation", "--filename", str(NODE / "istio.yaml"),
        "--filename", str(HERE.parents[1] / "container/istio-operator.yaml"), timeout=300)
    wait_for_istiod()


def install_by_helm(folder, image):
    """The chart of istiod in the folder of scripts/helm, over what istioctl has installed; its values are those of istio.yaml, and then those of
    container/istio-values.yaml."""
    operator = yaml.safe_load((NODE / "istio.yaml").read_text())["spec"]
    chart_values = operator["values"] | {"meshConfig": operator["meshConfig"]}
    chart_values["global"] |= {"hub": operator["hub"], "tag": operator["tag"]}
    del chart_values["global"]["proxy_init"]
    chart_values |= chart_values.pop("pilot")
    (NODE / "helm-values.yaml").write_text(yaml.safe_dump(chart_values))
    shipped = (HERE.parents[1] / "container/istio-values.yaml").read_text()
    (NODE / "istio-values.yaml").write_text(shipped.replace("localhost/sidetrack:0.2.0", image))
    run(f"{folder}/helm", "upgrade", "istiod", f"{folder}/istiod", "--install", "--take-ownership", "--force-conflicts", "--namespace", "istio-system",
        "--values", str(NODE / "helm-values.yaml"), "--values", str(NODE / "istio-values.yaml"))
    wait_for_istiod()


def wait_for_istiod():
    """Until the istiod that was installed last is the only one: its webhooks are called then, and not those of one that ends."""
    kubectl("--namespace", "istio-system", "rollout", "status", "deployment/istiod", "--timeout=120s")
    def alone():
        """the istiod before it has ended"""
        return len(get("pods", "--namespace", "istio-system", "--selector", "app=istiod")["items"]) == 1
    eventually(60, alone)


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
