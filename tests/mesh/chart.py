"""The phase of charts/sidetrack: helm installs it, upgrades it and takes it off again. Without Istio's injector."""
import base64
import json
import os
import pathlib

from cluster import HERE, NODE, apply, differs, eventually, get, kubectl, ready_pods, run
from compare import rules_of

PROJECT = HERE.parents[1]
CONFLIST = pathlib.Path("/etc/cni/net.d/10-pods.conflist")
STATUS = '{"initContainers": null, "containers": ["istio-proxy"], "volumes": null, "imagePullSecrets": null, "revision": "default"}'


def namespace(name, **labels):
    """One into which Istio does not inject."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"sidetrack-test": "yes", **labels}}}


def pod(namespace_name, name, annotations=None):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace_name, "name": name, "annotations": annotations or {}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [
                {"name": "app", "image": "busybox:1", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "86400"]}]}}


def helm(*words):
    return run(f"{os.environ['SIDETRACK_HELM']}/helm", *words)


def upgrade(release, namespace_name, *settings):
    """Installs the release or changes it, and waits until all of it is ready."""
    helm("upgrade", release, str(PROJECT / "charts/sidetrack"), "--install", "--namespace", namespace_name, "--reuse-values", "--wait", "--timeout=150s",
         *(f"--set={each}" for each in settings))


def entries():
    """The entries of the chain that the runtime calls for a pod, by their types."""
    return {each["type"]: each for each in json.loads(CONFLIST.read_text())["plugins"]}


def daemon_sets():
    return [each["metadata"]["name"] for each in get("daemonsets", "--namespace", "kube-system", "--selector", "app=sidetrack-cni")["items"]]


def taken_off():
    """the chain has no entry of the plugin, the DaemonSet that took it off is ready, and the one that installed it has ended"""
    status = get("daemonset", "sidetrack-cni", "--namespace", "kube-system")["status"]
    pods = get("pods", "--namespace", "kube-system", "--selector", "app=sidetrack-cni")["items"]
    return list(entries()) == ["bridge"] and status["numberReady"] == status["desiredNumberScheduled"] == len(pods) == 1


def has_rules(name):
    """Makes a pod that asks to be captured; whether it is."""
    apply([pod("chart", name, {"sidecar.istio.io/status": STATUS})])
    return bool(rules_of(ready_pods(["chart"])["chart", name]))


def check_plugin(checks):
    """The CNI plugin: installed, changed, taken off by `helm uninstall`, installed over what that has left, taken off by a value."""
    before = CONFLIST.read_text()
    excluded = "cni.excludeNamespaces={kube-system,istio-system}"
    checks.attempt("chart: helm installs the CNI plugin, and waits until it is ready", lambda: upgrade("sidetrack", "kube-system", excluded))
    checks.check("chart: the plugin is the last of the chain", differs(list(entries()), ["bridge", "sidetrack-cni"]))
    checks.check("chart: a pod gets its rules", differs(has_rules("captured"), True))
    checks.attempt("chart: helm upgrade changes a value", lambda: upgrade("sidetrack", "kube-system", "cni.dns=true"))
    entry = entries()["sidetrack-cni"]
    checks.check("chart: it reaches the plugin, and the others stay", differs(
        (entry.get("dns"), entry.get("dualStack"), entry.get("excludeNamespaces")), (True, None, ["kube-system", "istio-system"])))
    checks.attempt("chart: helm uninstall ends", lambda: helm("uninstall", "sidetrack", "--namespace", "kube-system"))
    checks.attempt("chart: helm uninstall takes the plugin off the node", lambda: eventually(90, taken_off))
    checks.check("chart: the conflist is as it was", differs(json.loads(CONFLIST.read_text()), json.loads(before)))
    checks.check("chart: a pod that starts now has no rules", differs(has_rules("later"), False))
    checks.check("chart: a pod that runs keeps its rules", differs(bool(rules_of(ready_pods(["chart"])["chart", "captured"])), True))
    checks.check("chart: the program stays for it", "" if pathlib.Path("/opt/cni/bin/sidetrack-cni").exists() else "it is gone")
    checks.attempt("chart: helm takes over what helm uninstall has left", lambda: upgrade("sidetrack", "kube-system", excluded))
    checks.check("chart: the plugin is the last of the chain again", differs(list(entries()), ["bridge", "sidetrack-cni"]))
    checks.attempt("chart: helm upgrade with cni.uninstall waits until the plugin is off", lambda: upgrade("sidetrack", "kube-system", "cni.uninstall=true"))
    checks.check("chart: then it is", differs(list(entries()), ["bridge"]))
    checks.attempt("chart: helm uninstall ends", lambda: helm("uninstall", "sidetrack", "--namespace", "kube-system"))
    checks.check("chart: it leaves no DaemonSet then", differs(daemon_sets(), []))


def certificate():
    """The Secret's certificate and authority, and the authority of the webhook's configuration."""
    data = get("secret", "sidetrack-injector", "--namespace", "sidetrack")["data"]
    webhook, = get("mutatingwebhookconfiguration", "sidetrack-injector")["webhooks"]
    return data["tls.crt"], data["ca.crt"], webhook["clientConfig"]["caBundle"]


def injected():
    """What a pod of a labelled namespace gets."""
    spec = json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", data=json.dumps(pod("shop", "web"))))["spec"]
    return [each["name"] for kind in ("initContainers", "containers") for each in spec.get(kind, [])]


def check_injector(checks):
    """The injector: its certificate stays through upgrades, until the next one is asked for."""
    apply([namespace("sidetrack"), namespace("shop", **{"sidetrack-injection": "enabled"})])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "shop"))
    both = ["istio-init", "app", "istio-proxy"]
    def answers():
        """the webhook answers, once kube-proxy knows where it is"""
        return injected() == both
    checks.attempt("chart: helm installs the injector, and waits until it is ready",
                   lambda: upgrade("injector", "sidetrack", "cni.enabled=false", "injector.enabled=true"))
    checks.attempt("chart: a pod of a labelled namespace gets istio-init and the proxy", lambda: eventually(30, answers))
    first = certificate()
    checks.check("chart: the API server trusts the authority of the Secret", differs(first[2], first[1]))
    checks.attempt("chart: helm upgrade changes the injector", lambda: upgrade("injector", "sidetrack", "injector.replicas=1", "injector.args={--verbose}"))
    checks.check("chart: helm upgrade keeps the certificate", differs(certificate(), first))
    checks.check("chart: the webhook still answers", differs(injected(), both))
    checks.attempt("chart: helm upgrade makes the next certificate", lambda: upgrade("injector", "sidetrack", "injector.certificate.generation=2"))
    second = certificate()
    authorities = base64.b64decode(second[1]).decode()
    checks.check("chart: it is another one", "" if second[0] != first[0] else "it is the same")
    checks.check("chart: the authority before it stays valid", "" if base64.b64decode(first[1]).decode().strip() in authorities else authorities)
    checks.check("chart: two authorities are trusted", differs((authorities.count("BEGIN"), second[2]), (2, second[1])))
    checks.check("chart: the webhook answers meanwhile", differs(injected(), both))
    checks.attempt("chart: helm upgrade once more", lambda: upgrade("injector", "sidetrack", "injector.replicas=2"))
    checks.check("chart: the next certificate stays, too", differs(certificate(), second))
    checks.attempt("chart: helm uninstall takes the injector away", lambda: helm("uninstall", "injector", "--namespace", "sidetrack", "--wait"))
    checks.check("chart: pods are not changed any more", differs(injected(), ["app"]))


def phase_chart(phase, _, program):
    """charts/sidetrack, by helm."""
    if not os.environ.get("SIDETRACK_HELM"):
        print("NOT RUN: the chart: scripts/test istio has not built helm: SIDETRACK_HELM is not set")
        return
    apply([namespace("chart")])
    eventually(30, lambda: get("serviceaccount", "default", "--namespace", "chart"))
    check_plugin(phase.checks)
    injector = pathlib.Path(program).with_name("sidetrack-injector")
    if not injector.exists():
        print("NOT RUN: the chart's injector, which needs sidetrack-injector beside the program")
        return
    run(str(PROJECT / "scripts/image"), "injector", "--program", str(injector), "--output", str(NODE / "image-injector"))
    run("ctr", "--namespace", "k8s.io", "images", "import", str(NODE / "image-injector/sidetrack-injector.oci.tar"))
    check_injector(phase.checks)
