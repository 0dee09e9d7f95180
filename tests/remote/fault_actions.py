"""What a server of the remote cache may do wrong, one function for each: what fault_server.py does instead of answering.

An action is called with the request's handler (a BaseHTTPRequestHandler with the fields of fault_server.Handler) and its
argument, the text behind the colon of `slow:0.01`. It returns True if the connection may go on, False if it is at an end.
"""

import http.client
import select
import socket
import struct

import action_result


def wait_for_end(handler, seconds=60):
    """Until the client closes, the server stops, or the time is over."""
    waited = 0
    while waited < seconds and not handler.server.owner.stopping.wait(0.05):
        waited += 0.05
        if select.select([handler.connection], [], [], 0)[0]:
            try:
                if not handler.connection.recv(65536):
                    return
            except OSError:
                return


def head(handler, status, length, *more):
    handler.send_response(status)
    if length is not None:
        handler.send_header("Content-Length", str(length))
    for name, value in more:
        handler.send_header(name, value)
    handler.end_headers()


def slow(handler, argument):
    """A byte each 50 ms, or as many seconds as the argument says: a whole answer would take minutes."""
    body = handler.stored() or bytes(4096)
    handler.read_body()
    head(handler, 200, max(len(body), 4096))
    try:
        for at in range(len(body)):
            handler.wfile.write(body[at:at + 1])
            if handler.server.owner.stopping.wait(float(argument or 0.05)):
                break
    except OSError:
        pass
    return False


def hang(handler, _):
    handler.read_body()
    wait_for_end(handler)
    return False


def truncated(handler, _):
    """The length of the whole body, half of it, and the connection closed."""
    body = handler.stored() or bytes(64)
    handler.read_body()
    head(handler, 200, len(body))
    handler.wfile.write(body[:len(body) // 2])
    return False


def flipped(handler, _):
    body = bytearray(handler.stored() or b"?")
    handler.read_body()
    body[len(body) // 2] ^= 1
    return handler.answer(200, bytes(body))


def other(handler, _):
    """The whole and sound bytes of another entry, or of the manifest of another kernel (the shortest: not a plan's)."""
    handler.read_body()
    store, kind = handler.server.owner.store, handler.kind()
    bodies = [store.get(name) for name in sorted(store.names()) if f"/{kind}/" in name and name != handler.path]
    if not bodies:
        return handler.answer(404, b"")
    return handler.answer(200, min(bodies, key=len))


def swapped(handler, _):
    """The right manifest with the right names, but the digests of other entries that are there and whole."""
    handler.read_body()
    mine = action_result.parse(handler.stored() or b"")
    others = []
    for name in sorted(handler.server.owner.store.names()):
        if "/ac/" in name and name != handler.path:
            others += action_result.parse(handler.server.owner.store.get(name))
    digests = {digest for _, digest, _ in mine}
    others = [file for file in others if file[1] not in digests] or mine[1:] + mine[:1]
    if not mine or not others:
        return handler.answer(404, b"")
    files = [(path, *others[at % len(others)][1:]) for at, (path, _, _) in enumerate(mine)]
    return handler.answer(200, action_result.build(files))


def chunked(handler, _):
    """The right bytes without a Content-Length."""
    body = handler.stored()
    handler.read_body()
    head(handler, 200 if body is not None else 404, None, ("Transfer-Encoding", "chunked"))
    for at in range(0, len(body or b""), 1000):
        piece = body[at:at + 1000]
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    handler.wfile.write(b"0\r\n\r\n")
    return True


def unlengthed(handler, _):
    """The right bytes without a length, ended by closing the connection."""
    body = handler.stored() or b""
    handler.read_body()
    head(handler, 200, None, ("Connection", "close"))
    handler.wfile.write(body)
    return False


def huge(handler, argument):
    """No end: chunks for ever, or with `huge:length` a Content-Length of 1 TiB. As fast as the client reads."""
    handler.read_body()
    length = argument == "length"
    head(handler, 200, 1 << 40 if length else None, *([] if length else [("Transfer-Encoding", "chunked")]))
    block = bytes(1 << 16)
    try:
        while not handler.server.owner.stopping.is_set():
            handler.wfile.write(block if length else b"%x\r\n%s\r\n" % (len(block), block))
            handler.server.owner.endless_bytes += len(block)
    except OSError:
        pass
    return False


def reset(handler, _):
    """RST in place of an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.drop()
    return False


def half_upload(handler, _):
    """Reads half of the body, keeps nothing, and resets."""
    handler.rfile.read(int(handler.headers.get("Content-Length", 0)) // 2)
    return reset(handler, None)


def garbage(handler, _):
    handler.read_body()
    handler.wfile.write(b"\x16\x03\x01 no HTTP at all \xff\x00" * 40)
    return False


def redirect(handler, argument):
    """`redirect` or `redirect:same` to this server with the same path, `port` to its second port, `host` to another
    address (127.0.0.2, the third port), `loop` to itself for ever, `gone` to a closed port, or `redirect:URL`."""
    handler.read_body()
    owner = handler.server.owner
    scheme = "https" if owner.tls else "http"
    host = handler.server.server_address[0]
    path = handler.path if argument == "loop" else "/_redirected" + handler.path
    base = {"same": f"{scheme}://{host}:{owner.ports[0]}", "loop": f"{scheme}://{host}:{owner.ports[0]}",
            "port": f"{scheme}://{host}:{owner.ports[1]}", "host": f"{scheme}://127.0.0.2:{owner.ports[2]}",
            "gone": f"{scheme}://{host}:1"}.get(argument or "same", argument)
    head(handler, 302, 0, ("Location", base + path))
    return True


def late(handler, argument):
    """The right answer, but only after so many seconds."""
    handler.server.owner.stopping.wait(float(argument or 0.2))
    return handler.serve()


def status(handler, argument):
    """That status; behind a colon, how many bytes long the page is that explains it."""
    handler.read_body()
    argument, _, length = argument.partition(":")
    if argument in ("204", "304"):  # these have no body
        head(handler, int(argument), None)
        return True
    reason = http.client.responses.get(int(argument), "Odd").encode()
    more = [("WWW-Authenticate", 'Basic realm="cache"')] if argument == "401" else []
    page = reason + b" said the test server\n"
    return handler.answer(int(argument), page.ljust(int(length or 0)), *more)


ACTIONS = {"slow": slow, "hang": hang, "truncated": truncated, "flipped": flipped, "other": other, "swapped": swapped,
           "chunked": chunked, "unlengthed": unlengthed, "huge": huge, "reset": reset, "half-upload": half_upload,
           "garbage": garbage, "redirect": redirect, "late": late}


def find(name):
    """The action of that name and its argument, or None for "ok". ValueError if there is no such action."""
    if name == "ok":
        return None
    if name[:3].isdigit() and name[3:4] in ("", ":"):
        return status, name
    action, _, argument = name.partition(":")
    if action not in ACTIONS:
        raise ValueError(f"no fault is called {name}")
    return ACTIONS[action], argument
