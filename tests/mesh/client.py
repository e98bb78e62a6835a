#!/usr/bin/env python3
"""What a program in a pod does, and what it gets, as JSON on standard output; run in the pod's network namespace.

  client.py http URL                       one request, by a connection of its own; a name is asked of the cluster's DNS
  client.py tcp HOST PORT                  connects, and says nothing: what the server says first
  client.py dns NAME udp|tcp|udp6|tcp6 ADDRESS
                                           the addresses of a name, asked of the server at that address
  client.py stray ADDRESS PORT             sends a SYN and ACK that belongs to no connection (of IPv4), as root: whether a RST comes back
  client.py load URL FILE                  requests, one after the other, as long as the file is there: how many had which result
"""
import collections
import ipaddress
import json
import os
import socket
import struct
import sys
import urllib.parse

TIMEOUT = 5
CLUSTER_DNS = "10.96.0.10"


def question(name, kind):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", int.from_bytes(os.urandom(2), "big"), 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def receive(connection, length):
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise OSError("the connection ended early")
        data += part
    return data


def ask(name, transport, server):
    kind = 28 if transport.endswith("6") else 1
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    if transport.startswith("udp"):
        with socket.socket(family, socket.SOCK_DGRAM) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect((server, 53))
            connection.send(question(name, kind))
            reply = connection.recv(4096)
    else:
        with socket.create_connection((server, 53), TIMEOUT) as connection:
            sent = question(name, kind)
            connection.sendall(struct.pack("!H", len(sent)) + sent)
            reply = receive(connection, struct.unpack("!H", receive(connection, 2))[0])
    code, answers = reply[3] & 15, struct.unpack("!H", reply[6:8])[0]
    if code:
        return {"dns_code": code}
    position = 12

    def skip_name():
        nonlocal position
        while reply[position]:
            if reply[position] >= 192:
                position += 2
                return
            position += reply[position] + 1
        position += 1

    skip_name()
    position += 4
    addresses = []
    for _ in range(answers):
        skip_name()
        answer_kind, _, _, length = struct.unpack("!HHIH", reply[position:position + 10])
        position += 10
        if answer_kind == kind:
            addresses.append(str(ipaddress.ip_address(reply[position:position + length])))
        position += length
    return {"addresses": sorted(addresses)}


def address_of(host):
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        found = ask(host, "udp", CLUSTER_DNS)
        if not found.get("addresses"):
            raise OSError(f"{host} has no address: {found}") from None
        return found["addresses"][0]


def read_all(connection):
    data = b""
    while part := connection.recv(65536):
        data += part
    return data


def http(url):
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection((address_of(parts.hostname), parts.port or 80), TIMEOUT) as connection:
        port = connection.getsockname()[1]
        connection.sendall(f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    words = head.split()
    return {"port": port, "code": words[1].decode() if len(words) > 1 else "none", "said": body.decode().strip()}


def tcp(host, port):
    with socket.create_connection((address_of(host), int(port)), TIMEOUT) as connection:
        own = connection.getsockname()[1]
        return {"port": own, "said": read_all(connection).decode().strip()}


def stray(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as connection:
        connection.connect((host, 0))
        own, to = 61234, int(port)
        header = struct.pack("!HHIIBBHHH", own, to, 1, 1, 5 << 4, 0x12, 1024, 0, 0)
        ends = socket.inet_aton(connection.getsockname()[0]) + socket.inet_aton(host)
        total = sum(struct.unpack("!16H", ends + struct.pack("!HH", socket.IPPROTO_TCP, len(header)) + header))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        connection.send(header[:16] + struct.pack("!H", ~total & 0xffff) + header[18:])
        connection.settimeout(TIMEOUT)
        while True: # a raw socket gets other connections' packets, too
            packet = connection.recv(65536)
            reply = packet[(packet[0] & 15) * 4:]
            if struct.unpack("!HH", reply[:4]) == (to, own):
                return {"rst": bool(reply[13] & 4)}


def load(url, file):
    global TIMEOUT
    TIMEOUT = 60 # a machine that is busy is no failure
    seen = collections.Counter()
    while os.path.exists(file):
        try:
            seen[http(url)["code"]] += 1
        except OSError as error:
            seen[error.strerror or str(error)] += 1
    return seen


def main(arguments):
    kinds = {"http": http, "tcp": tcp, "dns": ask, "stray": stray, "load": load}
    try:
        result = kinds[arguments[0]](*arguments[1:])
    except socket.timeout:
        result = {"error": "no answer"}
    except OSError as error:
        result = {"error": error.strerror or str(error)}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
