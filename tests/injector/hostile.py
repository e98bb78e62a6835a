# SPDX-License-Identifier: GPL-2.0-or-later
"""Reviews that are to hurt: what a client, or who writes a pod, can make grow. See webhook.py."""
import http.client
import json
import random
import threading
import time

MIB = 1 << 20
LARGEST = 8 * MIB
OF_ANNOTATIONS = 256 << 10
SIZES = 6  # of each shape, each four times the one before
SMALL = 16 << 10  # larger ones, whose answers may be eight times as long, are served PLACES at a time
PLACES = 2
TRIES = 50


def request(spec="", metadata="", more=""):
    return ('{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":"shop","operation":"CREATE",'
            '"kind":{"group":"","version":"v1","kind":"Pod"}%s,"object":{"metadata":{%s},"spec":{%s}}}}' % (more, metadata, spec))


def annotated(**annotations):
    return request(metadata='"annotations":' + json.dumps({name.replace("_", "/"): text for name, text in annotations.items()}))


def config(yaml):
    return annotated(**{"proxy.istio.io_config": yaml})


def fill(size, each, between=","):
    """each(0), each(1), … in so many bytes, about."""
    parts, left, number = [], size, 0
    while left > 0:
        part = each(number)
        parts.append(part)
        left -= len(part) + len(between)
        number += 1
    return between.join(parts)


def named(number):
    return '{"name":"n%d"}' % number


def key(number):
    return '"k%d":""' % number


def moved(size):
    """Containers that take each other's place, below a long key."""
    containers = fill(size, lambda i: '{"name":"n%d","%s":[%s]}' % (i, "k" * 50_000, ",".join(str(i + j) for j in range(1000))))
    return request('"containers":[' + containers + "]", '"annotations":{"sidecar.istio.io/status":"{\\"containers\\":[\\"n0\\"]}"}')


def injected_before(size):
    names = json.dumps({"containers": [f"n{2 * i}" for i in range(min(size // 60, 20_000))]})
    return request('"containers":[' + fill(size, named) + "]", '"annotations":{"sidecar.istio.io/status":%s}' % json.dumps(names))


def overridden(size):
    few = min(size, OF_ANNOTATIONS) // 40
    status = json.dumps({"containers": [f"n{i}" for i in range(few)]})
    own = json.dumps({"containers": [{"name": f"n{i}"} for i in range(few // 2)]})
    annotations = {"sidecar.istio.io/status": status, "proxy.istio.io/overrides": own}
    return request('"containers":[' + fill(size, named) + "]", '"annotations":' + json.dumps(annotations))


def anchors_within_anchors(size):
    return config("a: " + "".join(f"&a{i} [" for i in range(90)) + fill(min(size, OF_ANNOTATIONS - 2000), lambda _: "xxxxxxxx") + "]" * 90)


SHAPES = {
    "long texts": lambda size: request('"a":"' + "x" * size + '"'),
    "escaped texts": lambda size: request('"containers":[{"name":"istio-proxy","image":"' + "\\u0001" * (size // 6) + '"}]'),
    "texts of the pod's own proxy": lambda size: request('"containers":[{"name":"istio-proxy","image":"' + "x" * size + '"}]'),
    "long numbers": lambda size: request('"a":' + "1" * size),
    "many numbers": lambda size: request('"a":[' + "0," * (size // 2) + "0]"),
    "many lists": lambda size: request('"a":[' + "[]," * (size // 3) + "0]"),
    "many documents": lambda size: "{}" * (size // 2),
    "deep": lambda size: '{"a":' * (size // 5),
    "deep and wide": lambda size: request('"a":' + "[" * 90 + fill(size, str) + "]" * 90),
    "repeated keys": lambda size: request(fill(size, key) + ',"k0":1'),
    "keys of the spec": lambda size: request(fill(size, key)),
    "long keys": lambda size: request(fill(size, lambda i: '"%s%d":""' % ("k" * 50_000, i))),
    "labels": lambda size: request(metadata='"labels":{' + fill(size, key) + "}"),
    "annotations": lambda size: request(metadata='"annotations":{' + fill(size, key) + "}"),
    "containers": lambda size: request('"containers":[' + fill(size, named) + "]"),
    "containers without names": lambda size: request('"containers":[' + fill(size, lambda _: "{}") + "]"),
    "volumes": lambda size: request('"volumes":[' + fill(size, named) + "]"),
    "variables": lambda size: request('"containers":[{"name":"istio-proxy","env":[' + fill(size, named) + "]}]"),
    "keys of the pod's own proxy": lambda size: request('"containers":[{"name":"istio-proxy",' + fill(size, key) + "}]"),
    "old objects": lambda size: request(more=',"oldObject":{' + fill(size, key) + "}"),
    "injected before": injected_before,
    "overridden": overridden,
    "moved below a long key": moved,
    "unknown annotations": lambda size: request(metadata='"annotations":{' + fill(min(size, OF_ANNOTATIONS - 4000), lambda i: '"traffic.sidecar.istio.io/x%d":""' % i) + "}"),
    "ranges": lambda size: annotated(**{"traffic.sidecar.istio.io_includeOutboundIPRanges": fill(min(size, OF_ANNOTATIONS - 4000), lambda i: f"10.{i // 256 % 256}.{i % 256}.0/24")}),
    "long status": lambda size: annotated(**{"sidecar.istio.io_status": "[" * size}),
    "aliases of a long text": lambda size: config("a: &a " + "x" * (size // 4 % 100_000) + "\nb: [" + fill(min(size, OF_ANNOTATIONS) // 2, lambda _: "*a") + "]"),
    "aliases of aliases": lambda size: config("a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(min(size // 100, 1000)))),
    "anchors within anchors": anchors_within_anchors,
    "merged mappings": lambda size: config("a: &a {" + fill(2000, lambda i: f"k{i}: v") + "}\nb: {" + fill(min(size, OF_ANNOTATIONS - 4000), lambda _: "<<: *a") + "}"),
    "directives of YAML": lambda size: config(fill(min(size, OF_ANNOTATIONS - 100), lambda i: f"%TAG !a{i}! x", "\n") + "\n--- {}\n"),
    "brackets of YAML": lambda size: config("a: " + "[" * min(size, OF_ANNOTATIONS - 100)),
    "variables of the config": lambda size: config("proxyMetadata:\n" + fill(min(size, OF_ANNOTATIONS - 1000), lambda i: f"  V{i}: v", "\n")),
}


def bodies(seed):
    """(shape, body): each shape at sizes up to the largest request, in an order by the seed."""
    chosen = random.Random(seed)
    made = []
    for shape, body in SHAPES.items():
        for i in range(SIZES):
            size = int(LARGEST * 0.98 / 4 ** (SIZES - 1 - i) * chosen.uniform(0.8, 1))
            text = body(size).encode()
            made.append((shape, text if len(text) <= LARGEST else body(int(size * size / len(text) * 0.98)).encode()))
    chosen.shuffle(made)
    return made


class Attack:
    """As many of the reviews, from some connections at once, by turns with small ones of which each is to be injected."""

    def __init__(self, connect, small, count, connections, seed):
        self.connect, self.small = connect, small
        self.bodies = bodies(seed)
        self.numbers = iter(range(count))
        self.lock = threading.Lock()
        self.places = threading.Semaphore(PLACES)
        self.seconds = {}  # by shape, of whole requests
        self.statuses = {}
        self.problems = []
        threads = [threading.Thread(target=self.work_off) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def work_off(self):
        connection = self.connect()
        while True:
            with self.lock:
                number = next(self.numbers, None)
            if number is None:
                break
            shape, body = self.bodies[number % len(self.bodies)]
            if len(body) > SMALL:
                with self.places:
                    connection = self.post(connection, shape, body)
            else:
                connection = self.post(connection, shape, body)
            if number % 10 == 0:
                connection = self.post(connection, "(a pod as usual)", self.small)
        connection.close()

    def post(self, connection, shape, body):
        """Again while there is no place for another large request or answer: the server frees it when the last is sent."""
        for _ in range(TRIES):
            start = time.monotonic()
            try:
                connection.request("POST", "/inject", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text, status = answer.read(), answer.status
            except (OSError, http.client.HTTPException) as problem:
                text, status = b"", repr(problem)
                connection = self.connect()
            with self.lock:
                self.statuses[status] = self.statuses.get(status, 0) + 1
            if status in (200, 400) or body is self.small:
                break
        with self.lock:
            self.seconds.setdefault(shape, []).append(time.monotonic() - start)
            if status not in (200, 400) or (body is self.small and b'"patch"' not in text):
                self.problems.append((shape, status, text[:200]))
        return connection

    def table(self):
        """Rows of Markdown: shape, count, median, 99th percentile, longest."""
        rows = [(shape, sorted(times)) for shape, times in self.seconds.items()]
        rows.sort(key=lambda row: -row[1][-1])
        rows.append(("all", sorted(each for _, times in rows for each in times)))
        for shape, times in rows:
            yield "| %s | %d | %.1f ms | %.1f ms | %.1f ms |" % (
                shape, len(times), *(1000 * times[int(part * (len(times) - 1))] for part in (0.5, 0.99, 1)))
