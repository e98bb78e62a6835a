"""What scripts/test istio tries, as data. Each pod and each scenario is there twice: in the namespace "reference" the reference's own
istio-init programs the rules, in "sidetrack" Sidetrack. Both must give the same facts, and those that are expected here.

In what is expected, {ns} is the namespace, <NAME> an address of the pod of that name, and <world> the host outside."""

WORLD, WORLD6, WORLD_EXCLUDED = "198.51.100.10", "2001:db8:51::10", "203.0.113.10"
# A name that no DNS server knows, of a ServiceEntry whose endpoint is the world.
ENTRY, ENTRY_ADDRESS = "agent-only.example", "192.0.2.80"

SIDECAR = "sidecar.istio.io/"
TRAFFIC = "traffic.sidecar.istio.io/"


def metadata(**variables):
    """The annotation that sets variables of the proxy, and so of istio-init."""
    lines = "".join(f'  {name}: "{value}"\n' for name, value in variables.items())
    return {"proxy.istio.io/config": "proxyMetadata:\n" + lines}


# Each pod: its annotations. "short": it is needed by the short form, too.
PODS = {
    "client": {"short": True, "annotations": metadata(ISTIO_META_DNS_CAPTURE="true")},
    "web": {"short": True},
    "tproxy": {"short": True, "annotations": {SIDECAR + "interceptionMode": "TPROXY"}},
    "gateway": {"short": True, "gateway": True, "uncaptured": True, "annotations": {"inject.istio.io/templates": "gateway"}},
    "open": {"permissive": True},
    "regular": {"annotations": {SIDECAR + "nativeSidecar": "false"}},
    "hold": {"annotations": {SIDECAR + "nativeSidecar": "false", "proxy.istio.io/config": "holdApplicationUntilProxyStarts: true"}},
    "excluded": {"permissive": True, "annotations": {
        TRAFFIC + "excludeInboundPorts": "9080", TRAFFIC + "excludeOutboundPorts": "8999", TRAFFIC + "excludeOutboundIPRanges": "203.0.113.0/24"}},
    "ranges": {"annotations": {TRAFFIC + "includeOutboundIPRanges": "203.0.113.0/24"}},
    "ports": {"permissive": True, "annotations": {TRAFFIC + "includeInboundPorts": "8080", TRAFFIC + "includeOutboundIPRanges": "",
                                                  TRAFFIC + "includeOutboundPorts": "8999"}},
    "virtual": {"annotations": {"istio.io/reroute-virtual-interfaces": "tap0"}},
    "dual": {"permissive": True, "annotations": metadata(ISTIO_DUAL_STACK="true")},
    "drop": {"annotations": metadata(INVALID_DROP="true")},
    "none": {"uncaptured": True, "annotations": {SIDECAR + "interceptionMode": "NONE"}},
    "plain": {"uncaptured": True, "labels": {SIDECAR + "inject": "false"}, "permissive": True},
    "host": {"host_network": True},
    "probed": {"probes": True},
    "grpc": {"permissive": True, "uncaptured": True, "annotations": {"inject.istio.io/templates": "grpc-agent"}},
}

# What a client's own proxy and the server's proxy write of a connection: "out" and "in". None: it is in no access log.
OUT_HTTP = {"code": "200", "cluster": "outbound|80||{server}.{ns}.svc.cluster.local", "client": "<{client}>"}
IN_HTTP = {"code": "200", "chain": "0.0.0.0_8080", "cluster": "inbound|8080||", "tls": "TLSv1.3", "client": "<{client}>",
           "original_destination": "<{server}>:8080", "to_app_from": "127.0.0.6"}
PASSTHROUGH = {"cluster": "PassthroughCluster", "client": "<{client}>"}


def http(client, server, said, **more):
    return {"client": client, "server": server, "http": "http://{server}.{ns}.svc.cluster.local/{id}",
            "expect": {"said": said, "code": "200"}, **more}


SCENARIOS = {
    "STRICT mTLS": http("client", "web", "app web:8080 from 127.0.0.6 mtls", short=True, out=OUT_HTTP, into=IN_HTTP),
    "plain text to a STRICT pod is refused": {
        "short": True, "from": "world", "server": "web", "http": "http://<web>:8080/{id}", "expect": {"error": "Connection reset by peer"}},
    "DNS capture, udp": {"short": True, "client": "client", "dns": (ENTRY, "udp", "10.96.0.10"), "expect": {"addresses": [ENTRY_ADDRESS]}},
    "DNS capture, tcp": {"short": True, "client": "client", "dns": (ENTRY, "tcp", "10.96.0.10"), "expect": {"addresses": [ENTRY_ADDRESS]}},
    "DNS of a pod without capture": {"short": True, "client": "web", "dns": (ENTRY, "udp", "10.96.0.10"), "expect": {"dns_code": 2}},
    "a ServiceEntry's name, resolved by the agent": {
        "short": True, "client": "client", "http": f"http://{ENTRY}/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <client>"},
        "out": {"code": "200", "cluster": f"outbound|80||{ENTRY}", "client": "<client>"}},
    "TPROXY keeps the source": http("client", "tproxy", "app tproxy:8080 from <client> mtls", short=True, out=OUT_HTTP,
                                    into={**IN_HTTP, "to_app_from": "<client>"}),
    "TPROXY, outbound": http("tproxy", "web", "app web:8080 from 127.0.0.6 mtls", short=True, out=OUT_HTTP, into=IN_HTTP),
    "from outside through the gateway": {
        "short": True, "from": "world", "via": "gateway", "server": "web", "http": "http://<gateway>:8080/{id}",
        "expect": {"said": "app web:8080 from 127.0.0.6 mtls"},
        "out": {"code": "200", "cluster": "outbound|80||web.{ns}.svc.cluster.local", "client": "<world>"}, "into": {**IN_HTTP, "client": "<gateway>"}},
    "a gateway's own connections are not captured": {
        "short": True, "client": "gateway", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <gateway>"}},
    # ---- HTTP and TCP
    "TCP where the server speaks first": {
        "client": "client", "server": "web", "tcp": ("web.{ns}.svc.cluster.local", 7070), "expect": {"said": "app web:7070 from 127.0.0.6"},
        "out": {"cluster": "outbound|7070||web.{ns}.svc.cluster.local", "client": "<client>"},
        "into": {"cluster": "inbound|7070||", "tls": "TLSv1.3", "client": "<client>", "original_destination": "<web>:7070", "to_app_from": "127.0.0.6"}},
    "a headless service": {
        "client": "client", "server": "web", "http": "http://web-headless.{ns}.svc.cluster.local:8080/{id}",
        "expect": {"said": "app web:8080 from 127.0.0.6 mtls"},
        "out": {"code": "200", "cluster": "outbound|8080||web-headless.{ns}.svc.cluster.local"}, "into": IN_HTTP},
    "a pod by its own service": http("web", "web", "app web:8080 from 127.0.0.6 mtls", out=OUT_HTTP, into=IN_HTTP),
    "a pod's IP directly": {
        "client": "client", "server": "open", "http": "http://<open>:8080/{id}", "expect": {"said": "app open:8080 from 127.0.0.6 plain"},
        "out": {**PASSTHROUGH, "original_destination": "<open>:8080"}, "into": {**IN_HTTP, "tls": None}},
    "a pod's own IP": {"client": "web", "server": "web", "http": "http://<web>:8080/{id}", "expect": {"said": "app web:8080 from <web> plain"}},
    "a pod's own loopback": {"client": "web", "server": "web", "http": "http://127.0.0.1:8080/{id}",
                             "expect": {"said": "app web:8080 from 127.0.0.1 plain"}},
    "outside": {"client": "client", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <client>"},
                "out": {**PASSTHROUGH, "original_destination": f"{WORLD}:8000"}},
    "outside, TCP where the server speaks first": {
        "client": "client", "tcp": (WORLD, 7000), "expect": {"said": f"world {WORLD}:7000 from <client>"},
        "out": {**PASSTHROUGH, "original_destination": f"{WORLD}:7000"}},
    "from outside to a PERMISSIVE pod": {
        "from": "world", "server": "open", "http": "http://<open>:8080/{id}", "expect": {"said": "app open:8080 from 127.0.0.6 plain"},
        "into": {**IN_HTTP, "tls": None, "client": "<world>"}},
    "the readiness port 15021": {"from": "world", "server": "web", "http": "http://<web>:15021/healthz/ready", "expect": {"code": "200"}},
    "the agent's port 15020": {"from": "world", "server": "web", "http": "http://<web>:15020/healthz/ready", "expect": {"code": "200"}},
    "the metrics port 15090": {"from": "world", "server": "web", "http": "http://<web>:15090/stats/prometheus", "expect": {"code": "200"}},
    # ---- annotations
    "an excluded inbound port": {"from": "world", "server": "excluded", "http": "http://<excluded>:9080/{id}",
                                 "expect": {"said": "app excluded:9080 from <world> plain"}},
    "beside the excluded inbound port": {"from": "world", "server": "excluded", "http": "http://<excluded>:8080/{id}",
                                         "expect": {"said": "app excluded:8080 from 127.0.0.6 plain"}, "into": {**IN_HTTP, "tls": None, "client": "<world>"}},
    "an excluded outbound port": {"client": "excluded", "http": f"http://{WORLD}:8999/{{id}}", "expect": {"said": f"world {WORLD}:8999 from <excluded>"}},
    "an excluded outbound range": {"client": "excluded", "http": f"http://{WORLD_EXCLUDED}:8000/{{id}}",
                                   "expect": {"said": f"world {WORLD_EXCLUDED}:8000 from <excluded>"}},
    "beside what is excluded": {"client": "excluded", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <excluded>"},
                                "out": {**PASSTHROUGH}},
    "includeOutboundIPRanges: inside": {"client": "ranges", "http": f"http://{WORLD_EXCLUDED}:8000/{{id}}",
                                        "expect": {"said": f"world {WORLD_EXCLUDED}:8000 from <ranges>"}, "out": {**PASSTHROUGH}},
    "includeOutboundIPRanges: outside": {"client": "ranges", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <ranges>"}},
    "includeOutboundPorts: inside": {"client": "ports", "http": f"http://{WORLD}:8999/{{id}}", "expect": {"said": f"world {WORLD}:8999 from <ports>"},
                                     "out": {**PASSTHROUGH}},
    "includeOutboundPorts: outside": {"client": "ports", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <ports>"}},
    "includeInboundPorts: inside": {"from": "world", "server": "ports", "http": "http://<ports>:8080/{id}",
                                    "expect": {"said": "app ports:8080 from 127.0.0.6 plain"}, "into": {**IN_HTTP, "tls": None, "client": "<world>"}},
    "includeInboundPorts: outside": {"from": "world", "server": "ports", "http": "http://<ports>:9080/{id}",
                                     "expect": {"said": "app ports:9080 from <world> plain"}},
    "a pod with -k": http("virtual", "web", "app web:8080 from 127.0.0.6 mtls", out=OUT_HTTP, into=IN_HTTP),
    # ---- dual stack, INVALID_DROP, mode NONE
    "ISTIO_DUAL_STACK: outside, IPv6": {"client": "dual", "http": f"http://[{WORLD6}]:8000/{{id}}", "expect": {"said": f"world {WORLD6}:8000 from <dual>"},
                                        "out": {**PASSTHROUGH}},
    "ISTIO_DUAL_STACK: from outside, IPv6": {"from": "world", "server": "dual", "http": "http://[<dual/6>]:8080/{id}",
                                             "expect": {"said": "app dual:8080 from ::6 plain"}, "into": {"code": "200", "client": "<world>"}},
    "no ISTIO_DUAL_STACK: outside, IPv6": {"client": "web", "http": f"http://[{WORLD6}]:8000/{{id}}", "expect": {"said": f"world {WORLD6}:8000 from <web>"}},
    "INVALID_DROP": http("client", "drop", "app drop:8080 from 127.0.0.6 mtls", out=OUT_HTTP, into=IN_HTTP),
    "mode NONE": {"client": "none", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <none>"}},
    # ---- the life of a pod
    "a regular sidecar": http("client", "regular", "app regular:8080 from 127.0.0.6 mtls", out=OUT_HTTP, into=IN_HTTP),
    "a regular sidecar, outbound": http("regular", "web", "app web:8080 from 127.0.0.6 mtls", out=OUT_HTTP, into=IN_HTTP),
    "holdApplicationUntilProxyStarts": http("hold", "web", "app web:8080 from 127.0.0.6 mtls", out=OUT_HTTP, into=IN_HTTP),
    "a gRPC agent's pod": {"client": "grpc", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <grpc>"}},
    'inject: "false"': {"client": "plain", "http": f"http://{WORLD}:8000/{{id}}", "expect": {"said": f"world {WORLD}:8000 from <plain>"}},
    'inject: "false", to a STRICT pod': {"client": "plain", "http": "http://web.{ns}.svc.cluster.local/{id}", "expect": {"error": "Connection reset by peer"}},
}

# Of a scenario: the pod that is asked by `pilot-agent request GET`, and which of its listeners take the connections; "service" stands for the
# address of one. Of HTTP between proxies, the server's listener takes one connection for many requests.
LISTENERS = [
    ("STRICT mTLS", "client", ["0.0.0.0_80"]),
    ("TPROXY, outbound", "client", ["0.0.0.0_80"]),
    ("outside", "client", ["0.0.0.0_15001"]),
    ("TCP where the server speaks first", "client", ["service_7070"]),
    ("TCP where the server speaks first", "server", ["0.0.0.0_15006"]),
    ("a pod's own IP", "server", []),
    ("an excluded inbound port", "server", []),
    ("beside the excluded inbound port", "server", ["0.0.0.0_15006"]),
    ("an excluded outbound port", "client", []),
    ("ISTIO_DUAL_STACK: from outside, IPv6", "server", ["0.0.0.0_15006"]),
]
