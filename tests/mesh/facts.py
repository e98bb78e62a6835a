"""What became of one connection: what the client got, and what its own proxy ("out") and the server's ("in") wrote of it."""
import re

from scenarios import WORLD, WORLD6


class Names:
    """Says addresses by the names of what has them, so that two namespaces can be compared."""

    def __init__(self, namespace, pods, services):
        self.namespace = namespace
        self.by_address = {WORLD: "<world>", WORLD6: "<world>"}
        for pod in pods:
            for address in pod.addresses:
                self.by_address[address] = f"<{pod.name}>"
        for name, address in services.items():
            self.by_address[address] = f"<service {name}>"
        alternatives = "|".join(re.escape(each) for each in sorted(self.by_address, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w.:])\[?({alternatives})\]?(?![\w.]|:[0-9a-f]*:)")

    def say(self, value):
        if isinstance(value, str):
            named = self.pattern.sub(lambda match: self.by_address[match[1]], value)
            return re.sub(rf"(?<![\w-]){self.namespace}(?![\w-])", "{ns}", named)
        if isinstance(value, list):
            return [self.say(each) for each in value]
        return value


def host(address):
    """Of ADDRESS:PORT, as Envoy writes it, the address."""
    return address.rpartition(":")[0].strip("[]") if address else address


def find(entries, client, path):
    for entry in entries:
        if entry["client"] == client and (entry["path"] is None or path is None or entry["path"] == path):
            return entry
    return None


def endpoint(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def of_connection(names, result, client, server, addresses, path):
    """The facts of a connection from one of the client's addresses. A client or server without a proxy has no log."""
    out = into = None
    port = result.get("port")
    if port and client:
        out = next(filter(None, (find(client.access_log(), endpoint(each, port), path) for each in addresses)), None)
    if port and server:
        sources = [out["upstream_local"]] if out else [endpoint(each, port) for each in addresses]
        into = next(filter(None, (find(server.access_log(), each, path) for each in sources)), None)
        if into is out:
            into = None
    facts = {key: names.say(value) for key, value in result.items() if key != "port"}
    for key, entry in (("out", out), ("into", into)):
        facts[key] = None
        if entry:
            facts[key] = {name: names.say(entry[name]) for name in ("code", "flags", "chain", "cluster", "tls", "original_destination")}
            facts[key]["code"] = str(entry["code"])
            facts[key]["client"] = names.say(host(entry["client"]))
            facts[key]["upstream"] = names.say(entry["upstream"])
    if into:
        facts["into"]["to_app_from"] = names.say(host(into["upstream_local"]))
    return facts


def unlike(facts, expected):
    """The first fact that is not as expected; of "out" and "into", what is not named may be anything, and None means that there is none."""
    for key, value in expected.items():
        got = facts.get(key)
        if isinstance(value, dict):
            if got is None:
                return f"{key}: nothing is in the proxy's access log; expected {value}"
            if problem := unlike(got, value):
                return f"{key}: {problem}"
        elif got != value:
            return f"{key}: got {got!r}, expected {value!r}; all: {facts}"
    return ""
