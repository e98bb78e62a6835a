#!/usr/bin/env python3
"""A host outside of the cluster: HTTP on 8000 and 8999, and TCP that speaks first on 7000. Each says what it sees of a connection."""
import http.server
import socket
import socketserver
import threading


def seen(own, peer):
    return f"world {own[0].removeprefix('::ffff:')}:{own[1]} from {peer[0].removeprefix('::ffff:')}"


class Http(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (seen(self.connection.getsockname(), self.client_address) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall((seen(self.request.getsockname(), self.client_address) + "\n").encode())


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True


for port, handler in ((8000, Http), (8999, Http), (7000, Tcp)):
    threading.Thread(target=Server(("::", port), handler).serve_forever).start()
print("ready", flush=True)
