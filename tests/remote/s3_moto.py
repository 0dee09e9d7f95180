"""PyPI's moto as an S3 server of the remote cache: the one S3 server that a registry offers as a plain Python package.

    s3_moto.py ENVIRONMENT_FILE     writes endpoint, region, bucket and keys as NAME=value lines once it listens, and serves;
                                    ENVIRONMENT_FILE.session has the keys of a role's session, .log the requests

or in a test, where `with Moto(folder) as server` starts and ends it as a process. `missing()` says why it cannot be had.

moto takes any key unless it is told to check: here it refuses what is not signed by the node's secret (SigV4, which its
own copy of the AWS library computes again from the request; it takes the region from the request, so that a wrong one is
not refused). It does not compare x-amz-content-sha256 with the body, so a check of that stands in front of it. `server.requests()` are its lines of
{"method", "path", "status", "headers" (names), "signed" (names)}.
"""

import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

BUCKET = "kernels"
REGION = "eu-test-1"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def missing():
    for module in ("moto.server", "flask", "flask_cors"):
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return f"no {module} for this Python (tools/setup.sh adds moto where it can be had)"
    return None


class PayloadCheck:
    """WSGI: refuses a body that is not what x-amz-content-sha256 says, as S3 does, and logs each request."""

    def __init__(self, application, log_file):
        self.application, self.log_file = application, log_file

    def __call__(self, environment, start_response):
        length = int(environment.get("CONTENT_LENGTH") or 0)
        body = environment["wsgi.input"].read(length) if length else b""
        environment["wsgi.input"] = io.BytesIO(body)
        authorization = environment.get("HTTP_AUTHORIZATION", "")
        signed = re.search(r"SignedHeaders=([^,]*)", authorization)
        line = {"method": environment["REQUEST_METHOD"], "path": environment["PATH_INFO"], "status": None,
                "headers": sorted(name[5:].lower().replace("_", "-") for name in environment if name.startswith("HTTP_")),
                "signed": signed[1].split(";") if signed else []}

        def started(status, headers, *more):
            line["status"] = int(status.split()[0])
            if not environment["PATH_INFO"].startswith("/moto-api"):
                with open(self.log_file, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
            return start_response(status, headers, *more)

        told = environment.get("HTTP_X_AMZ_CONTENT_SHA256")
        if "/s3/" in authorization and told not in (hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"):
            started("400 Bad Request", [("Content-Type", "application/xml")])
            return [b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>"]
        return self.application(environment, started)


def ask(endpoint, method, path, service, body=b"", kind="text/plain"):
    """A request of the time before keys are checked: the header only says which service is meant."""
    credential = f"AWS4-HMAC-SHA256 Credential=root/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    request = urllib.request.Request(endpoint + path, body or None, method=method,
                                     headers={"Authorization": credential, "Content-Type": kind,
                                              "X-Amz-Content-Sha256": hashlib.sha256(body).hexdigest()})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def iam(endpoint, action, **fields):
    form = urllib.parse.urlencode({"Action": action, "Version": "2010-05-08", **fields}).encode()
    return ask(endpoint, "POST", "/", "iam", form, "application/x-www-form-urlencoded")


def prepare(endpoint):
    """Makes the bucket, a user and a role, turns the checks on; the user's keys, and those of a session of the role."""
    where = f"<CreateBucketConfiguration><LocationConstraint>{REGION}</LocationConstraint></CreateBucketConfiguration>"
    ask(endpoint, "PUT", f"/{BUCKET}", "s3", where.encode())
    iam(endpoint, "CreateUser", UserName="node")
    iam(endpoint, "PutUserPolicy", UserName="node", PolicyName="all", PolicyDocument=json.dumps(POLICY))
    made = iam(endpoint, "CreateAccessKey", UserName="node")
    key, secret = (re.search(f"<{name}>(.*?)</{name}>", made)[1] for name in ("AccessKeyId", "SecretAccessKey"))
    iam(endpoint, "CreateRole", RoleName="node", AssumeRolePolicyDocument="{}")
    iam(endpoint, "PutRolePolicy", RoleName="node", PolicyName="all", PolicyDocument=json.dumps(POLICY))
    form = urllib.parse.urlencode({"Action": "AssumeRole", "Version": "2011-06-15", "RoleSessionName": "node",
                                   "RoleArn": "arn:aws:iam::123456789012:role/node"}).encode()
    session = ask(endpoint, "POST", "/", "sts", form, "application/x-www-form-urlencoded")
    ask(endpoint, "POST", "/moto-api/reset-auth", "s3", b"0")
    return [key, secret], [re.search(f"<{name}>(.*?)</{name}>", session)[1]
                           for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")]


def serve(environment_file):
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Kept(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept, as a real S3 does

        def log(self, *_):
            pass

    application = PayloadCheck(DomainDispatcherApplication(create_backend_app), environment_file + ".log")
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Kept)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    user, session = prepare(endpoint)
    Path(environment_file + ".log").write_text("")
    where = f"GEMVJIT_REMOTE=s3://{BUCKET}/some/prefix\nAWS_ENDPOINT_URL_S3={endpoint}\nAWS_REGION={REGION}\n"
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    for suffix, keys in ((".session", session), ("", user)):  # the one that is waited for last
        lines = "".join(f"{name}={value}\n" for name, value in zip(names, keys))
        Path(f"{environment_file}{suffix}.new").write_text(where + lines)
        os.rename(f"{environment_file}{suffix}.new", f"{environment_file}{suffix}")
    threading.Event().wait()


class Moto:
    def __init__(self, folder):
        self.file = Path(folder) / "moto.env"

    def __enter__(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.process = subprocess.Popen([sys.executable, "-B", __file__, str(self.file)], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not self.file.exists():
            if self.process.poll() is not None:
                raise RuntimeError(self.process.communicate()[1])
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def environment(self, session=False):
        """The variables that lead a node here, with a user's keys or with those of a role's session."""
        text = Path(f"{self.file}{'.session' if session else ''}").read_text()
        return dict(line.split("=", 1) for line in text.splitlines())

    def requests(self, method=None):
        lines = Path(f"{self.file}.log").read_text().splitlines()
        return [line for line in map(json.loads, lines) if method in (None, line["method"])]


if __name__ == "__main__":
    if missing():
        sys.exit(f"s3_moto: {missing()}")
    serve(sys.argv[1])
