"""Debian's nginx as a server of the remote cache: WebDAV's PUT into a folder, GET and HEAD from it.

    nginx_dav.py FOLDER [ADDRESS]       prints the URL, serves until it is interrupted

or in a test, where `with Nginx(folder) as server` starts and ends it. `missing()` says why it cannot be had here: the
package `nginx` is enough, its http_dav_module is built in. Locations, which all show the same files:

    /rw/ /ro/ (no PUT) /basic/ (user `node`, password server.password) /bearer/ (server.token) /mtls/ (TLS port only)

It runs in the foreground, without rights of its own: as root it is given the user nobody. The second port speaks TLS if
`certificates` (certificates.make) are given; there /mtls/ asks for a client's certificate.
"""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CONFIGURATION = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log notice;
events {{ worker_connections 512; }}
http {{
  log_format lines escape=json '{{"connection": $connection, "method": "$request_method", "path": "$uri", '
                               '"status": $status, "sent": $body_bytes_sent}}';
  access_log {folder}/access.log lines;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  default_type application/octet-stream;
  client_max_body_size 64m;
  keepalive_requests 10000;
  sendfile on;
  tcp_nodelay on;
  server {{
    listen {address}:{port};
    {tls}
    location /rw/ {{ alias {folder}/files/; dav_methods PUT; create_full_put_path on; }}
    location /ro/ {{ alias {folder}/files/; limit_except GET {{ deny all; }} }}
    location /basic/ {{
      alias {folder}/files/;
      dav_methods PUT;
      create_full_put_path on;
      auth_basic cache;
      auth_basic_user_file {folder}/passwords;
    }}
    location /bearer/ {{
      if ($http_authorization != "Bearer {token}") {{ return 401; }}
      alias {folder}/files/;
      dav_methods PUT;
      create_full_put_path on;
    }}
    location /mtls/ {{
      if ($ssl_client_verify != SUCCESS) {{ return 403; }}
      alias {folder}/files/;
      dav_methods PUT;
      create_full_put_path on;
    }}
  }}
}}
"""
TLS = """listen {address}:{port} ssl;
    ssl_certificate {certificates}/server.pem;
    ssl_certificate_key {certificates}/server.key;
    ssl_client_certificate {certificates}/ca.pem;
    ssl_verify_client optional;"""


def program():
    return shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Why there is no nginx to test with, or None."""
    if program() is None:
        return "no nginx here (Debian's package nginx has what is needed)"
    told = subprocess.run([program(), "-V"], capture_output=True, text=True, check=False).stderr
    for module in ("http_dav_module", "http_ssl_module"):
        if module not in told:
            return f"this nginx was built without {module}"
    return None


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class Nginx:
    token = "bearer-of-nginx-0123456789"
    user, password = "node", "password-of-nginx"

    def __init__(self, folder, address="127.0.0.1", certificates=None, namespace=None):
        self.folder, self.address = Path(folder).resolve(), address
        self.certificates, self.process = certificates, None
        self.prefix = ["ip", "netns", "exec", namespace] if namespace else []

    def configure(self):
        self.port, self.tls_port = free_port("127.0.0.1"), free_port("127.0.0.1")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "files").mkdir(exist_ok=True)
        (self.folder / "passwords").write_text(f"{self.user}:{{PLAIN}}{self.password}\n")
        tls = TLS.format(address=self.address, port=self.tls_port, certificates=self.certificates)
        (self.folder / "nginx.conf").write_text(CONFIGURATION.format(
            folder=self.folder, address=self.address, port=self.port, token=self.token,
            tls=tls if self.certificates else ""))

    def unprivileged(self):
        """The front of the command that takes root's rights away, with the folder given to who it becomes."""
        if os.geteuid() != 0:
            return []
        nobody = pwd.getpwnam("nobody")
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        if self.certificates:
            os.chmod(Path(self.certificates) / "server.key", 0o644)
        return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups",
                "--bounding-set=-all", "--no-new-privs"]

    def __enter__(self):
        for _ in range(5):  # another process may take the free port first
            self.configure()
            command = [*self.prefix, *self.unprivileged(), program(), "-p", str(self.folder), "-e",
                       str(self.folder / "error.log"), "-c", str(self.folder / "nginx.conf")]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if self.wait_until_it_listens():
                return self
            why = self.process.communicate()[1]
            if "Address already in use" not in why:
                break
        raise RuntimeError(f"nginx does not start: {why}")

    def wait_until_it_listens(self):
        """By the file that it writes once its sockets are open: the test may stand in another network."""
        while self.process.poll() is None:
            path = self.folder / "nginx.pid"
            if path.exists() and path.read_text().strip() == str(self.process.pid):
                return True
            time.sleep(0.01)
        return False

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def url(self, location="rw"):
        return f"http://{self.address}:{self.port}/{location}"

    def tls_url(self, location="rw"):
        return f"https://{self.address}:{self.tls_port}/{location}"

    def files(self):
        """{"cas/...": bytes} of what is stored."""
        root = self.folder / "files"
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def requests(self, method=None):
        lines = (self.folder / "access.log").read_text().splitlines()
        return [line for line in map(json.loads, lines) if method in (None, line["method"])]


def main():
    if missing():
        sys.exit(f"nginx_dav: {missing()}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Nginx(*sys.argv[1:3]) as server:
        print(server.url(), flush=True)
        try:
            server.process.wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
