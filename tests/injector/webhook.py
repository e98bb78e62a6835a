# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of sidetrack-injector: webhook.py PROGRAM FOLDER"""
import base64
import ctypes
import errno
import http.client
import json
import os
import queue
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import types

import hostile as hostile_reviews

program, work = sys.argv[1:]
failed = 0
MIB = 1 << 20
# Sanitizers keep what was freed.
sanitized = os.environ.get("SIDETRACK_SANITIZED") == "1"


def check(what, passed, more=""):
    global failed
    print(f"{'ok' if passed else 'FAILED':8}{what}{'' if passed else f': {more}'}", flush=True)
    failed += not passed


def path(name):
    return os.path.join(work, name)


def certificate(name):
    """A new one for localhost, of which the caller makes what is served."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "1", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", path(name + ".key"), "-out", path(name + ".crt")], check=True, capture_output=True)


def put_in_place(name):
    """As the kubelet does with a Secret: a folder of links is renamed."""
    os.makedirs(path("tls." + name), exist_ok=True)
    for kind in ("crt", "key"):
        with open(path(name + "." + kind), "rb") as source, open(path(f"tls.{name}/tls.{kind}"), "wb") as target:
            target.write(source.read())
    os.symlink("../tls." + name, path("data.new"))
    os.rename(path("data.new"), path("tls/..data"))


class Injector:
    def __init__(self, *options, listen="127.0.0.1:0", prepare=None):
        self.process = subprocess.Popen(
            [program, "--cert", path("tls/tls.crt"), "--key", path("tls/tls.key"), "--template", path("proxy.yaml"),
             "--listen", listen, *options], stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
        self.lines = queue.Queue()
        first = self.process.stderr.readline()
        if "--no-sandbox" in options:
            check("it says that it is in no sandbox", first.endswith("not in a sandbox: --no-sandbox\n"), first)
            first = self.process.stderr.readline()
        if "listens on" not in first:
            sys.exit("it does not start: " + first)
        self.port = int(re.search(r"port (\d+)", first)[1])
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        for line in self.process.stderr:
            self.lines.put(line)

    def said(self, words, timeout=20):
        """The next line with these words."""
        end = time.monotonic() + timeout
        while True:
            line = self.lines.get(timeout=max(end - time.monotonic(), 0.01))
            if words in line:
                return line

    def peak(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def rights(process):
    """Of each thread: its filter of system calls, its no_new_privs and its capabilities."""
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        with open(f"/proc/{process.pid}/task/{thread}/status", encoding="ascii") as file:
            yield re.findall(r"^(?:CapPrm|CapEff|NoNewPrivs|Seccomp):\s+(\w+)", file.read(), re.M)


def trust(*names):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in names:
        context.load_verify_locations(path(name + ".crt"))
    return context


def connect(injector, context):
    return http.client.HTTPSConnection("localhost", injector.port, context=context, timeout=30)


def raw(injector, context):
    return context.wrap_socket(socket.create_connection(("127.0.0.1", injector.port), timeout=30), server_hostname="localhost")


def review(annotations=None, uid="1", containers=1, **request):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "annotations": annotations or {}},
           "spec": {"containers": [{"name": f"web-{i}", "image": "web", "env": [{"name": "A", "value": "b" * 200}]}
                                   for i in range(containers)]}}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                       "request": {"uid": uid, "kind": {"group": "", "version": "v1", "kind": "Pod"},
                                   "namespace": "shop", "operation": "CREATE", "object": pod, **request}})


JSON = {"Content-Type": "application/json"}


def post(connection, body, headers=JSON):
    connection.request("POST", "/inject", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def is_injected(answer, uid):
    status, body = answer
    response = json.loads(body)["response"] if status == 200 else {}
    if response.get("uid") != uid or not response.get("allowed") or response.get("patchType") != "JSONPatch":
        return False
    steps = json.loads(base64.b64decode(response["patch"], validate=True))
    return any(step["path"] == "/spec/initContainers" and step["value"][0]["name"] == "istio-init" for step in steps)


# ---- One by one.

def answers(injector, context):
    connection = connect(injector, context)
    check("a pod is injected", is_injected(post(connection, review(uid="a")), "a"))
    status, body = post(connection, review({"traffic.sidecar.istio.io/includeInboundPorts": "http"}))
    response = json.loads(body)["response"]
    check("a wrong annotation is refused by its name",
          status == 200 and response["allowed"] is False and response["status"]["message"] ==
          "Pod shop/web-: traffic.sidecar.istio.io/includeInboundPorts: 'http': expected a port from 1 to 65535, or a range such as 9000-9100", body)
    status, body = post(connection, review({"sidecar.istio.io/inject": "false"}))
    check("a pod that wants none is left alone", json.loads(body)["response"] == {"uid": "1", "allowed": True}, body)
    for method, target, expected in (("GET", "/ready", 200), ("GET", "/inject", 405), ("POST", "/ready", 405),
                                     ("GET", "/", 404), ("GET", "/ready?x=1", 200)):
        connection.request(method, target)
        answer = connection.getresponse()
        answer.read()
        check(f"{method} {target} is {expected}", answer.status == expected, answer.status)
    status, _ = post(connection, review(), {"Content-Type": "text/plain"})
    check("another content type is 415", status == 415, status)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    for line in ("sidetrack_injector_injected_total 1", "sidetrack_injector_refused_total 1",
                 'sidetrack_injector_skipped_total{reason="inject_false"} 1', 'sidetrack_injector_requests_total{code="405"} 2',
                 "sidetrack_injector_request_seconds_count 9", "sidetrack_injector_connections 1"):
        check(f"the metrics have {line}", line + "\n" in metrics, metrics)
    connection.close()


def least_privilege(injector, context):
    if sanitized:
        return
    CAP_DAC_READ_SEARCH = 2
    held = list(rights(injector.process))
    check("each thread is in the sandbox", len(held) == 2 and
          all(int(permitted, 16) | int(effective, 16) in (0, 1 << CAP_DAC_READ_SEARCH) and rest == ["1", "2"]
              for permitted, effective, *rest in held), held)
    with Injector("--no-sandbox") as other:
        check("pods are injected without it", is_injected(post(connect(other, context), review()), "1"))
        check("--no-sandbox leaves it out", [rest for _, _, *rest in rights(other.process)] == [["0", "0"]] * 2)


def rules_of_http(injector, context):
    connection = connect(injector, context)
    for target, length in (("/ready", "6"), ("/nothing", "20")):
        connection.request("HEAD", target)
        answer = connection.getresponse()
        check(f"HEAD {target} has the length of a body and none", answer.getheader("Content-Length") == length, answer.headers)
        answer.read()
    connection.request("GET", "/ready")
    check("what comes after HEAD is answered", connection.getresponse().read() == b"ready\n")
    for method, target, allowed in (("PUT", "/ready", "GET, HEAD"), ("GET", "/inject", "POST")):
        connection.request(method, target)
        answer = connection.getresponse()
        answer.read()
        check(f"{method} {target} is told what is allowed", answer.getheader("Allow") == allowed, answer.headers)
    for type_, expected in (("Application/JSON ; charset=utf-8", 200), ("application/json-patch+json", 415), ("", 415)):
        status, _ = post(connection, review(), {"Content-Type": type_})
        check(f"the content type '{type_}' is {expected}", status == expected, status)
    connection.close()
    body = review().encode()
    expecting = request(b"", len(body)).replace(b"Host:", b"Expect: 100-Continue\r\nHost:")
    with raw(injector, context) as client:
        client.settimeout(5)
        client.sendall(expecting)
        try:
            first = client.recv(100)
        except socket.timeout:
            first = b"nothing"
        check("who asks whether to go on with the body is told to", first == b"HTTP/1.1 100 Continue\r\n\r\n", first)
        client.sendall(body)
        check("and is answered", b"200 OK" in client.recv(65536))
    with raw(injector, context) as client:
        client.sendall(expecting + body)
        answer = b""
        while b'"patch"' not in answer:
            answer += client.recv(65536)
        check("who does not wait for that is answered, too", b"200 OK" in answer, answer[:200])


def versions_of_tls(injector, context):
    for version, expected in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
        client = trust("first")
        client.set_ciphers("DEFAULT:@SECLEVEL=0")
        client.minimum_version = client.maximum_version = version
        try:
            raw(injector, client).close()
            accepted = True
        except (ssl.SSLError, ConnectionError):
            accepted = False
        check(f"{version.name} is {'accepted' if expected else 'refused'}", accepted == expected)


# ---- What is no review.

def status_of(injector, context, data, chunks=1):
    """Of the answer to these bytes; None if the connection ends without one."""
    with raw(injector, context) as client:
        try:
            size = max(1, -(-len(data) // chunks))
            for i in range(0, len(data), size):
                client.sendall(data[i:i + size])
        except (ssl.SSLError, ConnectionError):
            pass  # the answer may be there all the same
        try:
            answer = client.recv(4096)
        except (ssl.SSLError, ConnectionError):
            return None
        return int(answer.split()[1]) if answer else None


def request(body, length=None):
    head = f"POST /inject HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    return head.encode() + body


def hostile(injector, context):
    bodies = {
        "garbage": os.urandom(10_000), "an empty body": b"", "half a review": review().encode()[:100],
        "a deep body": b"[" * MIB, "a body of deep objects": b'{"a":' * 200_000, "many values": b"[" + b"0," * (2 * MIB) + b"0]",
        "a zero byte": b"\0", "no UTF-8": b'{"kind": "\xff"}', "another document": b'{"kind": "Pod"}',
        "a huge number": b"1" * MIB, "one key twice": b'{"a": 1, "a": 2}',
    }
    for what, body in bodies.items():
        check(f"{what} is 400", status_of(injector, context, request(body)) == 400)
    check("no HTTP is 400", status_of(injector, context, b"garbage\r\n\r\n") == 400)
    check("a header without end is 431", status_of(injector, context, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000) == 431)
    check("9 MiB are 413", status_of(injector, context, request(b"", 9 * MIB)) == 413)
    chunks = b"POST /inject HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"100000\r\n" + b" " * MIB + b"\r\n") * 9
    check("9 MiB in chunks are 413", status_of(injector, context, chunks, 20) == 413)
    small = b"POST /inject HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"40\r\n" + b" " * 64 + b"\r\n") * (9 * MIB // 64)
    check("9 MiB in small chunks are 413", status_of(injector, context, small, 20) == 413)
    extended = b"POST /inject HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"a" * MIB + b"\r\n"
    check("an endless extension of a chunk is 400", status_of(injector, context, extended) == 400)
    trailed = b"POST /inject HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 20_000
    check("endless trailers are refused", status_of(injector, context, trailed) in (400, 431))
    with raw(injector, context) as client:
        client.sendall(b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n" * 5000)
        answers = b""
        while answers.count(b"\r\n\r\nready\n") < 5000 and (more := client.recv(65536)):
            answers += more
        check("5,000 requests sent at once are answered one by one", answers.count(b"\r\n\r\nready\n") == 5000, len(answers))
    check("8 MiB are read", status_of(injector, context, request(b" " * (8 * MIB)), 20) == 400)
    # Nothing at all, and no TLS.
    with socket.create_connection(("127.0.0.1", injector.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client.settimeout(10)
        try:
            while client.recv(4096):
                pass
            ended = True
        except ConnectionError:
            ended = True
        check("who speaks no TLS is sent away", ended)


def attacked(context):
    """Reviews that are to hurt, several at a time: SIDETRACK_HOSTILE_REVIEWS of them, in an order by SIDETRACK_SEED."""
    asked = os.environ.get("SIDETRACK_HOSTILE_REVIEWS")
    count = int(asked or "100")
    seed = int(os.environ.get("SIDETRACK_SEED", "1"))
    with Injector() as injector:
        before = injector.peak()
        attack = hostile_reviews.Attack(lambda: connect(injector, context), review(uid="1"), count, 6, seed)
        print(f"\n| {count} hostile reviews, seed {seed} | | median | 99th percentile | longest |\n|---|--:|--:|--:|--:|",
              *attack.table(), f"Peak memory: {injector.peak() / MIB:.0f} MiB, {before / MIB:.0f} before\n", sep="\n", flush=True)
        check("each hostile review is answered, and the others' pods are injected", not attack.problems and injector.process.poll() is None,
              (attack.statuses, attack.problems[:3]))
        if not sanitized:
            check("with at most 96 MiB, two large requests at a time", injector.peak() <= 96 * MIB, injector.peak() // 1024)
        connection = connect(injector, context)
        connection.request("GET", "/metrics")
        within = dict(re.findall(r'request_seconds_bucket{le="(1|0.1|\+Inf)"} (\d+)', connection.getresponse().read().decode()))
        print(f"Of {within['+Inf']} answers {within['0.1']} took at most 0.1 s, {within['1']} a second\n", flush=True)
        if asked:  # of a program that is compiled for speed
            check("none takes longer than a second", within["1"] == within["+Inf"], within)


def answered(injector, context):
    connection = connect(injector, context)
    connection.request("GET", "/metrics")
    counts = re.findall(r"requests_total{.*} (\d+)", connection.getresponse().read().decode())
    connection.close()
    return sum(map(int, counts))


def slow_readers(context):
    """Large answers that nobody takes: no more of them wait than there may be large requests."""
    body = json.loads(review({"sidecar.istio.io/status": '{"containers": ["web-0"]}'}, containers=1000))
    for i, container in enumerate(body["request"]["object"]["spec"]["containers"]):
        container["image"] = f"{i:1200}"  # each moves up by one: the patch names it
    data = request(json.dumps(body).encode())
    count = 40
    with Injector() as injector:
        before = injector.open_files()
        clients = []
        for _ in range(count):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", injector.port))
            client = context.wrap_socket(client, server_hostname="localhost")
            try:
                client.sendall(data)
            except (ssl.SSLError, OSError):
                pass  # refused before it was sent
            clients.append(client)
        end = time.monotonic() + 60
        while answered(injector, context) < count and time.monotonic() < end:
            pass
        check("who does not read large answers keeps none from being served", *is_served_within(5, injector, context))
        end = time.monotonic() + 5
        while (open_now := injector.open_files() - before) > 4 and time.monotonic() < end:
            pass
        check("only some of them wait for it", open_now <= 4, open_now)
        check("and takes little memory", sanitized or injector.peak() <= 40 * MIB, injector.peak() // 1024)
        for client in clients:
            client.close()


def slow(injector, context):
    """Bodies that come byte by byte are ended after the time for a request, however many, while others are served."""
    clients = [raw(injector, context) for _ in range(60)]
    quiet = [socket.create_connection(("127.0.0.1", injector.port)) for _ in range(30)]
    start = time.monotonic()
    for client in clients:
        client.sendall(request(b"", 1000))
    ended = set()
    longest = 0
    while len(ended) < len(clients) and time.monotonic() - start < 30:
        for i, client in enumerate(clients):
            if i in ended:
                continue
            try:
                client.sendall(b" ")
                client.settimeout(0.001)
                if client.recv(1) == b"":
                    ended.add(i)
            except (socket.timeout, ssl.SSLWantReadError):
                pass
            except (ssl.SSLError, OSError):
                ended.add(i)
        before = time.monotonic()
        connection = connect(injector, context)
        if not is_injected(post(connection, review()), "1"):
            check("others are served meanwhile", False)
        connection.close()
        longest = max(longest, time.monotonic() - before)
    check("slow requests are ended in time", len(ended) == len(clients) and time.monotonic() - start < 20,
          f"{len(ended)} after {time.monotonic() - start:.1f} s")
    check("others are served meanwhile", longest < 2, f"{longest:.1f} s")
    for client in clients + quiet:
        client.close()


def many_connections(injector, context):
    """More than there may be: the idle ones end, and new ones are served."""
    idle = [raw(injector, context) for _ in range(200)]
    connection = connect(injector, context)
    check("idle connections make room", is_injected(post(connection, review()), "1"))
    check("the number of connections is bounded", injector.open_files() < 160, injector.open_files())
    for client in idle + [connection]:
        client.close()


def is_served_within(seconds, injector, context):
    start = time.monotonic()
    connection = connect(injector, context)
    served = is_injected(post(connection, review()), "1")
    connection.close()
    taken = time.monotonic() - start
    return served and taken < seconds, f"{taken:.1f} s"


def busy_connections(injector, context):
    """More than there may be, none of which is idle: those that take longest make room before their time is over."""
    silent = [socket.create_connection(("127.0.0.1", injector.port)) for _ in range(300)]
    check("connections without a handshake make room", *is_served_within(8, injector, context))
    for client in silent:
        client.close()
    slow_ones = [raw(injector, context) for _ in range(128)]
    for client in slow_ones:
        client.sendall(request(b"", 1000))
    check("slow requests make room", *is_served_within(8, injector, context))
    for client in slow_ones:
        client.close()


def few_files(context):
    """A process that may open few files: the connections that it cannot have are none that it fails to accept."""
    with Injector(prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))) as injector:
        idle = [raw(injector, context) for _ in range(40)]
        check("with few files it serves whom it can", *is_served_within(5, injector, context))
        for client in idle:
            client.close()
    said = []
    while not injector.lines.empty():
        said.append(injector.lines.get())
    check("and says nothing", not said, said[:3])


def without_ipv6():
    """In the child: socket(AF_INET6) fails as on a kernel with ipv6.disable=1."""
    number, architecture = {"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}[os.uname().machine]
    fail, allow = 0x00050000 | errno.EAFNOSUPPORT, 0x7FFF0000
    load, equal, give = 0x20, 0x15, 0x06  # the architecture, the number and the first argument of the call
    steps = [(load, 0, 0, 4), (equal, 0, 5, architecture), (load, 0, 0, 0), (equal, 0, 3, number), (load, 0, 0, 16),
             (equal, 0, 1, socket.AF_INET6), (give, 0, 0, fail), (give, 0, 0, allow)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code)
    program_ = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program_, 0, 0) != 0:  # NO_NEW_PRIVS, SECCOMP
        raise OSError(ctypes.get_errno(), "prctl")


def kernel_without_ipv6(context):
    if os.uname().machine not in ("x86_64", "aarch64"):
        return
    with Injector(listen=":0", prepare=without_ipv6) as injector:
        check("where the kernel has no IPv6 it listens on IPv4", *is_served_within(5, injector, context))


# ---- Under load.

def load(injector, context, count, each=lambda number: None, reconnect=0):
    """As many reviews, 16 at a time. Returns what failed."""
    numbers = iter(range(count))
    lock = threading.Lock()
    problems = []

    def work_off():
        connection = None
        done = 0
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            each(number)
            try:
                if connection is None or (reconnect and done % reconnect == 0):
                    if connection is not None:
                        connection.close()
                    connection = connect(injector, context)
                done += 1
                answer = post(connection, review(uid=str(number), containers=1 + number % 20))
                if not is_injected(answer, str(number)):
                    problems.append(answer)
            except (OSError, http.client.HTTPException) as problem:
                problems.append(repr(problem))
                connection = None
        if connection is not None:
            connection.close()

    threads = [threading.Thread(target=work_off) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def certificate_changes(injector, context):
    both = trust("first", "second")

    def each(number):
        if number == 300:
            put_in_place("second")

    problems = load(injector, both, 2000, each, reconnect=5)
    check("no request fails while the certificate is changed", not problems, problems[:3])
    injector.said("loaded the new certificate")
    try:
        raw(injector, trust("second")).close()
        changed = True
    except ssl.SSLError:
        changed = False
    check("new connections have the new certificate", changed)
    os.makedirs(path("tls.broken"), exist_ok=True)
    for kind in ("crt", "key"):
        with open(path("tls.broken/tls." + kind), "w", encoding="ascii") as file:
            file.write("nonsense")
    os.symlink("../tls.broken", path("data.new"))
    os.rename(path("data.new"), path("tls/..data"))
    said = injector.said("keeping the old certificate")
    check("a broken certificate is said and not used", "tls.crt: " in said, said)
    problems = load(injector, trust("second"), 100, reconnect=1)
    check("and the last one goes on being used", not problems, problems[:3])
    put_in_place("second")
    # Behind links that stay, inotify sees nothing.
    for name in ("third", "second"):
        for kind in ("crt", "key"):
            with open(path(f"{name}.{kind}"), "rb") as source, open(path(f"tls.second/tls.{kind}"), "wb") as target:
                target.write(source.read())
        injector.process.send_signal(signal.SIGHUP)
        injector.said("loaded the new certificate")
        raw(injector, trust(name)).close()
        check(f"SIGHUP makes it look at its files ({name})", True)


def ends(injector, context):
    """SIGTERM while requests come: each has its answer, and the program ends with 0."""
    started = threading.Event()
    stop = threading.Event()
    problems = []
    served = [0]

    def work_on():
        connection = None
        while not stop.is_set():
            try:
                if connection is None:
                    connection = connect(injector, context)
                    connection.connect()
            except OSError:
                return  # it does not listen any more
            try:
                if not is_injected(post(connection, review()), "1"):
                    problems.append("an answer")
                served[0] += 1
                started.set()
                if connection.sock is None:  # it said that it closes
                    connection = None
            except (OSError, http.client.HTTPException) as problem:
                problems.append(repr(problem))
                connection = None

    threads = [threading.Thread(target=work_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait(10)
    idle = raw(injector, context)
    idle.sendall(request(review().encode()[:50], len(review())))
    injector.process.send_signal(signal.SIGTERM)
    injector.said("shutting down")
    before = served[0]
    idle.sendall(review().encode()[50:])
    answer = idle.recv(65536)
    check("a request that had begun has its answer, and the connection ends", b"200 OK" in answer and b"Connection: close" in answer, answer[:200])
    status = injector.process.wait(20)
    stop.set()
    for thread in threads:
        thread.join()
    check("SIGTERM ends it with 0", status == 0, status)
    check("those who still came were served", served[0] > before, served)
    # The last connection of each may meet the closed socket.
    check("no answer was lost", len(problems) <= len(threads) and "an answer" not in problems, problems[:5])


def expired():
    subprocess.run(["openssl", "req", "-new", "-key", path("first.key"), "-subj", "/CN=old", "-out", path("old.csr")],
                   check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", path("old.csr"), "-signkey", path("first.key"), "-days", "-1",
                    "-out", path("old.crt")], check=True, capture_output=True)
    process = subprocess.Popen([program, "--cert", path("old.crt"), "--key", path("first.key"), "--template",
                                path("proxy.yaml"), "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    process.kill()
    process.wait()
    check("a certificate that has expired is said", "old.crt: the certificate has expired" in first, first)


def unread_log(context):
    process = subprocess.Popen([program, "--cert", path("tls/tls.crt"), "--key", path("tls/tls.key"), "--template",
                                path("proxy.yaml"), "--listen", "127.0.0.1:0", "--verbose"], stderr=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    process.stderr.close()
    listening = types.SimpleNamespace(port=int(re.search(r"port (\d+)", first)[1]))
    try:
        answered = all(is_injected(post(connect(listening, context), review(uid=uid)), uid) for uid in ("1", "2"))
    except OSError:
        answered = False
    check("a log that nobody reads does not end it", answered and process.poll() is None)
    process.kill()
    process.wait()


def usage():
    with open(path("user.yaml"), "w", encoding="ascii") as file:
        file.write("containers: [{name: a, securityContext: {runAsUser: -1}}]\n")
    subprocess.run(["openssl", "ec", "-in", path("first.key"), "-aes128", "-passout", "pass:word", "-out", path("locked.key")],
                   check=True, capture_output=True)

    def said(*options):
        result = subprocess.run([program, *options], capture_output=True, text=True, timeout=20)
        return result.returncode, result.stderr

    good = ["--cert", path("first.crt"), "--key", path("first.key"), "--template", path("proxy.yaml"), "--listen", "127.0.0.1:0"]
    for what, options, expected in (
            ("no options", [], "--cert"),
            ("another's key", good + ["--key", path("second.key")], "second.key: expected the private key of the certificate, PEM: key values mismatch"),
            ("no certificate", good + ["--cert", path("none")], "none: cannot be read"),
            ("a template that is none", good + ["--template", path("first.crt")], "first.crt"),
            ("no address", good + ["--listen", "nowhere"], "--listen: 'nowhere': expected ADDRESS:PORT"),
            ("a name for an address", good + ["--listen", "localhost:0"], "cannot listen on 'localhost': expected an IP address"),
            ("a key with a pass phrase", good + ["--key", path("locked.key")], "locked.key: expected a key without a pass phrase"),
            ("a Helm value that is not known", good + ["--set", "a=b"], "--set: 'a'"),
            ("a Helm value that is refused", good + ["--set", "meshConfig.proxyListenPort=99999"],
             "--set meshConfig.proxyListenPort: '99999': expected a port"),
            ("a template with a wrong user", good + ["--template", path("user.yaml")],
             "user.yaml, line 1: container a: runAsUser: '-1': expected a number")):
        options = [option for i, option in enumerate(options)
                   if not any(option == later and option.startswith("--") for later in options[i + 1:])
                   and not (i > 0 and options[i - 1].startswith("--") and options[i - 1] in options[i + 1:])]
        status, text = said(*options)
        check(f"{what}: 2, and it says what", status == 2 and expected in text, (status, text))


def manifests():
    """Those of container/: what the script prints, and that the injector takes what they hold."""
    import yaml

    printed = subprocess.run(["../../container/injector-certificate", "--days", "2", "--namespace", "mesh"], check=True,
                             capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}).stdout
    namespace, secret, webhook = yaml.safe_load_all(printed)
    check("the script prints a namespace, a Secret and the webhook",
          (namespace["kind"], secret["kind"], webhook["kind"]) == ("Namespace", "Secret", "MutatingWebhookConfiguration"))
    hook = webhook["webhooks"][0]
    check("the webhook is that of the namespace, and fails closed",
          hook["clientConfig"]["service"]["namespace"] == secret["metadata"]["namespace"] == namespace["metadata"]["name"] == "mesh"
          and hook["failurePolicy"] == "Fail" and hook["namespaceSelector"] == {"matchLabels": {"sidetrack-injection": "enabled"}})
    with open("../../container/injector.yaml", encoding="utf-8") as file:
        objects = list(yaml.safe_load_all(file))
    check("the Deployment, its Service, template and budget are there",
          [thing["kind"] for thing in objects] == ["ConfigMap", "Deployment", "Service", "PodDisruptionBudget"])
    os.makedirs(path("tls"))
    for name, text in (("tls/tls.crt", base64.b64decode(secret["data"]["tls.crt"])), ("tls/tls.key", base64.b64decode(secret["data"]["tls.key"])),
                       ("ca.crt", base64.b64decode(hook["clientConfig"]["caBundle"])), ("proxy.yaml", objects[0]["data"]["template.yaml"].encode())):
        with open(path(name), "wb") as file:
            file.write(text)
    injector = Injector()
    client = trust("ca").wrap_socket(socket.create_connection(("127.0.0.1", injector.port)),
                                     server_hostname=f"{hook['clientConfig']['service']['name']}.mesh.svc")
    client.sendall(request(review().encode()))
    check("with them the API server trusts the injector, and pods are injected", b'"patch":' in client.recv(65536))
    client.close()
    injector.process.kill()
    injector.process.wait()
    for name in ("tls/tls.crt", "tls/tls.key"):
        os.unlink(path(name))


def main():
    manifests()
    for name in ("first", "second", "third"):
        certificate(name)
    put_in_place("first")
    for kind in ("crt", "key"):
        os.symlink("..data/tls." + kind, path("tls/tls." + kind))
    usage()
    expired()
    unread_log(trust("first"))
    few_files(trust("first"))
    kernel_without_ipv6(trust("first"))
    attacked(trust("first"))
    slow_readers(trust("first"))
    injector = Injector()
    try:
        context = trust("first")
        answers(injector, context)
        least_privilege(injector, context)
        rules_of_http(injector, context)
        versions_of_tls(injector, context)
        many_connections(injector, context)
        start = time.monotonic()
        problems = load(injector, context, 10_000)
        check(f"10,000 reviews, 16 at a time ({10_000 / (time.monotonic() - start):.0f} a second by this client)", not problems, problems[:3])
        check("with at most 32 MiB", sanitized or injector.peak() <= 32 * MIB, injector.peak() // 1024)
        hostile(injector, context)
        slow(injector, context)
        busy_connections(injector, context)
        check("with at most 96 MiB for all that", sanitized or injector.peak() <= 96 * MIB, injector.peak() // 1024)
        certificate_changes(injector, context)
        check("it is the same process all the time", injector.process.poll() is None)
        ends(injector, trust("second"))
    finally:
        if injector.process.poll() is None:
            injector.process.kill()
    print("peak memory was bounded; failed:", failed)
    sys.exit(failed != 0)


main()
