"""The manifests of the scenarios: namespaces with their pods, services and Istio's configuration."""
from scenarios import ENTRY, ENTRY_ADDRESS, PODS, WORLD

APP = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  map $http_x_forwarded_client_cert $peer { default plain; ~URI=spiffe mtls; }
  server {
    listen 8080;
    listen [::]:8080;
    listen 9080;
    default_type text/plain;
    return 200 "app $hostname:$server_port from $remote_addr $peer\\n";
  }
}
stream {
  server { listen 7070; listen [::]:7070; return "app $hostname:$server_port from $remote_addr\\n"; }
}
"""


def namespace(name, annotations=None):
    return {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"istio-injection": "enabled", "sidetrack-test": "yes"}, "annotations": annotations or {}}}


def pod(namespace_name, name, template=None):
    """A pod of the table; a template is injected after Istio's own."""
    asked = PODS[name]
    annotations = dict(asked.get("annotations", {}))
    labels = {"app": name, **asked.get("labels", {})}
    if asked.get("gateway"):
        labels["sidecar.istio.io/inject"] = "true"
        containers, volumes = [{"name": "istio-proxy", "image": "auto", "imagePullPolicy": "IfNotPresent"}], []
    else:
        if template and "inject.istio.io/templates" not in annotations and name != "none": # whose istio-init is nobody's
            annotations["inject.istio.io/templates"] = f"sidecar,{template}"
        app = {"name": "app", "image": "nginx:1.22", "command": ["nginx", "-e", "stderr", "-c", "/etc/app/nginx.conf"],
               "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
               "volumeMounts": [{"name": "app", "mountPath": "/etc/app"}, {"name": "tmp", "mountPath": "/tmp"}]}
        if asked.get("probes"):
            app["readinessProbe"] = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
            app["livenessProbe"] = {"tcpSocket": {"port": 7070}, "periodSeconds": 1}
        containers, volumes = [app], [{"name": "app", "configMap": {"name": "app"}}, {"name": "tmp", "emptyDir": {}}]
    spec = {"containers": containers, "volumes": volumes, "terminationGracePeriodSeconds": 1}
    if asked.get("host_network"):
        spec |= {"hostNetwork": True, "containers": [{"name": "app", "image": "busybox:1", "command": ["sleep", "86400"]}], "volumes": []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace_name, "name": name, "labels": labels, "annotations": annotations},
            "spec": spec}


def short_lived(namespace_name, kind, native, template):
    """A Job or a pod whose init containers ask the mesh and the host outside once, and whose app asks the mesh until there is an answer."""
    name = "job" if kind == "Job" else "pod-native" if native else "pod-regular"
    url = f"http://web.{namespace_name}.svc.cluster.local/{name}"
    annotations = {"sidecar.istio.io/nativeSidecar": str(native).lower()}
    if template:
        annotations["inject.istio.io/templates"] = f"sidecar,{template}"
    once, until = f"wget -q -O - {url} 2>/dev/null || echo no answer", f"until wget -q -O - {url}; do sleep 1; done 2>/dev/null"
    spec = {"restartPolicy": "Never",
            "initContainers": [{"name": name, "image": "busybox:1", "command": ["sh", "-c", command]}
                               for name, command in (("before-the-app", once), ("outside", once.replace(url, f"http://{WORLD}:8000/")))],
            "containers": [{"name": "app", "image": "busybox:1", "command": ["sh", "-c", until]}]}
    metadata = {"labels": {"app": name}, "annotations": annotations}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "namespace": namespace_name, "name": name}, "spec": spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": namespace_name, "name": name},
            "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": spec}}}


def deployment(namespace_name, name, replicas):
    """A deployment of the app that lets clients go before it ends."""
    made = pod(namespace_name, "web")
    app = made["spec"]["containers"][0]
    app["readinessProbe"] = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    app["lifecycle"] = {"preStop": {"sleep": {"seconds": 15}}} # until a busy istiod has told all clients
    made["spec"]["terminationGracePeriodSeconds"] = 40
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace_name, "name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                     "template": {"metadata": {"labels": labels, "annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}}}


def service(namespace_name, name, selector, **more):
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "tcp", "port": 7070, "targetPort": 7070}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace_name, "name": name},
            "spec": {"selector": {"app": selector}, "ports": ports, **more}}


def gateway(namespace_name, name, gateway_class):
    """A Gateway of the Gateway API, of which istiod makes a deployment."""
    listener = {"name": "mesh", "port": 15008, "protocol": "HBONE"} if "waypoint" in gateway_class else {"name": "http", "port": 8080, "protocol": "HTTP"}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"namespace": namespace_name, "name": name, "annotations": {"networking.istio.io/service-type": "ClusterIP"}},
            "spec": {"gatewayClassName": gateway_class, "listeners": [listener]}}


def istio(group, kind, namespace_name, name, **spec):
    return {"apiVersion": f"{group}.istio.io/v1", "kind": kind, "metadata": {"namespace": namespace_name, "name": name}, "spec": spec}


def mesh(namespace_name, names):
    """What surrounds the pods of a namespace: the app's configuration, services, and who is STRICT."""
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace_name, "name": "app"}, "data": {"nginx.conf": APP}},
        istio("security", "PeerAuthentication", namespace_name, "default", mtls={"mode": "STRICT"}),
        istio("networking", "ServiceEntry", namespace_name, "agent-only", hosts=[ENTRY], addresses=[ENTRY_ADDRESS], exportTo=["."],
              location="MESH_EXTERNAL", resolution="STATIC", ports=[{"number": 80, "name": "http", "protocol": "HTTP"}],
              endpoints=[{"address": WORLD, "ports": {"http": 8000}}]),
        istio("networking", "Gateway", namespace_name, "gateway", selector={"app": "gateway"},
              servers=[{"port": {"number": 8080, "name": "http", "protocol": "HTTP"}, "hosts": [f"{namespace_name}/*"]}]),
        istio("networking", "VirtualService", namespace_name, "gateway", hosts=["*"], gateways=["gateway"], exportTo=["."],
              http=[{"route": [{"destination": {"host": f"web.{namespace_name}.svc.cluster.local", "port": {"number": 80}}}]}]),
    ]
    for name in names:
        if PODS[name].get("gateway") or PODS[name].get("host_network"):
            continue
        objects.append(service(namespace_name, name, name))
        if PODS[name].get("permissive"):
            objects.append(istio("security", "PeerAuthentication", namespace_name, name, selector={"matchLabels": {"app": name}},
                                 mtls={"mode": "PERMISSIVE"}))
    if "none" in names: # without it, Envoy would open the ports of all services in the pod
        objects.append(istio("networking", "Sidecar", namespace_name, "none", workloadSelector={"labels": {"app": "none"}}, egress=[
            {"port": {"number": 15900, "name": "http", "protocol": "HTTP"}, "bind": "127.0.0.1", "captureMode": "NONE", "hosts": ["./*"]}]))
    if "web" in names:
        headless = service(namespace_name, "web-headless", "web", clusterIP="None")
        headless["spec"]["ports"] = [{"name": "http", "port": 8080}]
        objects.append(headless)
    return objects
