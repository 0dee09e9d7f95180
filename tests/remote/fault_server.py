"""A server of the remote cache's layout, <prefix>/cas/ and <prefix>/ac/, that misbehaves as told. For tests; HTTP/1.1 with
kept connections, a thread for each connection.

    fault_server.py [--address A] [--port-file FILE] [--folder DIR] [--log FILE] [--auth bearer:TOKEN|basic:USER:PASSWORD]
                    [--certificates DIR [--client-certificate]]

or in a test, where `with FaultServer() as server` starts and ends it.

It listens at three ports that serve the same, the third at 127.0.0.2; the others are what some redirects lead to.
--port-file gets the three numbers, once all listen. Every request becomes a line of JSON in the log:

    {"connection", "port", "method", "path", "class", "fault", "headers", "authorization", "body", "status", "stored"}

with the names of the headers, never their values; `authorization` says whether there was one; `body` is the number of bytes
that were read of the request's; `connection` numbers the connections, so that their reuse can be seen.

What to do wrong is told by class of request, which is get-cas, get-ac, put-cas, put-ac, head or other:

    POST /_control {"get-cas": ["503", "ok"], "put-ac": "reset"}      a list is worked off, its last item stays
    POST /_control {}                                                 all is well again
    GET /_log, POST /_clear (the log), GET /_stored (the paths)

The faults are those of fault_actions.py, or a status such as 500 (500:9999: with so long a page). /_redirected/PATH serves as PATH, where redirects lead.
"""

import argparse
import base64
import hashlib
import itertools
import json
import os
import re
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import action_result
import certificates
import fault_actions

NAME = re.compile(r"^(/_redirected)?(?P<name>(/[\w.-]+)*/(?P<kind>cas|ac)/[0-9a-f]{64})$")


class Memory:
    def __init__(self):
        self.files = {}

    def get(self, name):
        return self.files.get(name)

    def put(self, name, body):
        self.files[name] = body

    def names(self):
        return list(self.files)


class Folder:
    def __init__(self, folder):
        self.folder = Path(folder)

    def path(self, name):
        return self.folder / name.lstrip("/")

    def get(self, name):
        path = self.path(name)
        return path.read_bytes() if path.is_file() else None

    def put(self, name, body):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{threading.get_ident()}")
        new.write_bytes(body)
        new.rename(path)

    def names(self):
        return ["/" + str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "fault_server"
    sys_version = ""

    def setup(self):
        self.number = next(self.server.owner.numbers)
        if self.server.owner.tls:
            self.request.settimeout(10)
            self.request.do_handshake()
            self.request.settimeout(None)
        super().setup()

    def kind(self):
        return NAME.match(self.path)["kind"]

    def stored(self):
        found = NAME.match(self.path)
        return self.server.owner.store.get(found["name"]) if found else None

    def read_body(self):
        if self.body is None:
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                self.body = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    self.body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.line["body"] = len(self.body)
        return self.body

    def drop(self):
        """Closes now: the stream that reads holds the socket, too."""
        self.rfile.close()
        self.connection.close()

    def answer(self, status, body, *more):
        self.read_body()
        fault_actions.head(self, status, len(body), *more)
        if self.command != "HEAD":
            self.wfile.write(body)
        return True

    def send_response(self, code, message=None):
        self.line["status"] = code
        super().send_response(code, message)

    def authorized(self):
        wanted = self.server.owner.auth
        if not wanted:
            return True
        scheme, _, secret = wanted.partition(":")
        if scheme == "basic":
            secret = base64.b64encode(secret.encode()).decode()
        return self.headers.get("Authorization") == f"{scheme.capitalize()} {secret}"

    def control(self):
        owner = self.server.owner
        if self.command == "POST":
            body = self.read_body()
            if self.path == "/_control":
                try:
                    owner.faults(json.loads(body or b"{}"))
                except ValueError as error:
                    return self.answer(400, f"{error}\n".encode())
            elif self.path == "/_clear":
                owner.clear()
            return self.answer(200, b"{}\n")
        listed = owner.log if self.path == "/_log" else sorted(owner.store.names())
        return self.answer(200, "".join(json.dumps(line) + "\n" for line in listed).encode())

    def serve(self):
        if not self.authorized():
            return fault_actions.status(self, "401")
        found = NAME.match(self.path)
        if not found:
            return self.answer(404, b"no such place\n")
        if self.command == "PUT":
            body = self.read_body()
            if found["kind"] == "cas" and hashlib.sha256(body).hexdigest() != found["name"][-64:]:
                return self.answer(400, b"the bytes have another digest\n")
            self.server.owner.store.put(found["name"], body)
            self.line["stored"] = True
            return self.answer(200, b"")
        body = self.stored()
        if body is not None and found["kind"] == "ac" and self.server.owner.validates:
            folder = found["name"][:-len("ac/") - 64]
            named = action_result.parse(body)
            if any(self.server.owner.store.get(f"{folder}cas/{digest}") is None for _, digest, _ in named):
                body = None
        return self.answer(404, b"not here\n") if body is None else self.answer(200, body)

    def handle_request(self):
        self.body = None
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        if self.path.startswith("/_") and not self.path.startswith("/_redirected"):
            self.line = {}
            self.control()
            return
        found = NAME.match(self.path)
        name = "head" if self.command == "HEAD" else f"{self.command.lower()}-{found['kind']}" if found else "other"
        fault = self.server.owner.next_fault(name)
        if found and found[1] and fault.startswith("redirect") and fault != "redirect:loop":
            fault = "ok"  # where a redirect led, all is well
        self.line = {"connection": self.number, "port": self.server.server_address[1], "method": self.command,
                     "path": self.path, "class": name, "fault": fault, "headers": sorted(self.headers.keys()),
                     "authorization": "Authorization" in self.headers, "body": 0, "status": None, "stored": False}
        self.server.owner.note(self.line)
        self.server.owner.count(1)
        try:
            action = fault_actions.find(fault)
            going_on = action[0](self, action[1]) if action else self.serve()
        except OSError:
            going_on = False
        finally:
            self.server.owner.count(-1)
        if not going_on:
            self.close_connection = True
        self.server.owner.write_line(self.line)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def log_message(self, *_):
        pass


class Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, owner):
        self.request_queue_size = owner.queue
        super().__init__(address, Handler)
        self.owner = owner

    def get_request(self):
        connection, address = self.socket.accept()
        if self.owner.tls:  # the handshake is the connection's own thread's
            connection = self.owner.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def shutdown_request(self, request):
        try:
            super().shutdown_request(request)
        except OSError:
            pass

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a client that goes away is no fault of this server
            self.owner.broken.append(repr(error))


class FaultServer:
    """`most_at_once`: how many requests were under way at the same time. `certificates`: the folder that certificates.make made; then it speaks TLS, and with `client_certificate` only to
    who shows one. `auth`: "bearer:TOKEN" or "basic:USER:PASSWORD". `queue`: how many connections may wait to be accepted.
    `validates`: as bazel-remote does, an /ac/ file is not there while a payload that it names is not."""

    def __init__(self, address="127.0.0.1", folder=None, log_file=None, auth=None, certificates=None,
                 client_certificate=False, queue=128, validates=False):
        self.address, self.auth, self.queue, self.validates = address, auth, queue, validates
        self.store = Folder(folder) if folder else Memory()
        self.log, self.broken, self.log_file = [], [], log_file
        self.endless_bytes = self.at_once = self.most_at_once = 0
        self.numbers, self.lock, self.stopping = itertools.count(1), threading.Lock(), threading.Event()
        self.plan, self.tls, self.listeners = {}, None, []
        if certificates:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(Path(certificates) / "server.pem", Path(certificates) / "server.key")
            if client_certificate:
                self.tls.load_verify_locations(Path(certificates) / "ca.pem")
                self.tls.verify_mode = ssl.CERT_REQUIRED

    def __enter__(self):
        other_host = "127.0.0.2" if self.address.startswith("127.") else self.address
        self.listeners = [Listener((address, 0), self) for address in (self.address, self.address, other_host)]
        self.ports = [listener.server_address[1] for listener in self.listeners]
        for listener in self.listeners:
            threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for listener in self.listeners:
            listener.shutdown()
            listener.socket.close()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.ports[0]}"

    def faults(self, plan):
        """ValueError if a class or a fault is not known; then nothing has changed."""
        lists = {name: [told] if isinstance(told, str) else list(told) for name, told in plan.items()}
        for name, told in lists.items():
            if name not in ("get-cas", "get-ac", "put-cas", "put-ac", "head", "other") or not told:
                raise ValueError(f"no class of requests is called {name}")
            for fault in told:
                fault_actions.find(fault)
        with self.lock:
            self.plan = lists

    def next_fault(self, name):
        with self.lock:
            told = self.plan.get(name, ["ok"])
            return told.pop(0) if len(told) > 1 else told[0]

    def count(self, more):
        with self.lock:
            self.at_once += more
            self.most_at_once = max(self.most_at_once, self.at_once)

    def note(self, line):
        with self.lock:
            self.log.append(line)

    def write_line(self, line):
        if self.log_file:
            with self.lock, open(self.log_file, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")

    def clear(self):
        with self.lock:
            self.log.clear()

    def requests(self, *names):
        """The lines of those classes, all if none is named."""
        with self.lock:
            return [line for line in self.log if not names or line["class"] in names]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    for name in ("--port-file", "--folder", "--log", "--auth", "--certificates"):
        parser.add_argument(name)
    parser.add_argument("--client-certificate", action="store_true")
    told = parser.parse_args()
    if told.certificates and not (Path(told.certificates) / "server.pem").exists():
        certificates.make(told.certificates)
    with FaultServer(told.address, told.folder, told.log, told.auth, told.certificates,
                     told.client_certificate) as server:
        ports = " ".join(map(str, server.ports)) + "\n"
        if told.port_file:
            Path(told.port_file + ".new").write_text(ports)
            os.rename(told.port_file + ".new", told.port_file)
        else:
            print(ports, end="", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
