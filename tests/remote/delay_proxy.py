"""A relay that makes a server seem far away: bytes arrive later, each way, by half the round trip that it is told, and a new
connection waits for one round trip more, as its handshake would take. For machines whose kernel has no netem. It holds
nothing back: bandwidth is the loopback's.

    delay_proxy.py TARGET_PORT ROUND_TRIP_MS      prints its own port, relays until it is interrupted
"""

import queue
import socket
import sys
import threading
import time


def relay(source, target, seconds, begin):
    """From a socket to another, each piece `seconds` after it came, and none before `begin`."""
    pieces = queue.Queue()

    def write():
        while True:
            due, piece = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not piece:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(piece)
            except OSError:
                return

    threading.Thread(target=write, daemon=True).start()
    piece = b"?"
    while piece:
        try:
            piece = source.recv(1 << 16)
        except OSError:
            piece = b""
        pieces.put((max(begin, time.monotonic()) + seconds, piece))


def serve(listener, target_port, round_trip):
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(("127.0.0.1", target_port))
        begin = time.monotonic() + round_trip
        for connection in (near, far):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=relay, args=(source, target, round_trip / 2, begin), daemon=True).start()


if __name__ == "__main__":
    server = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(server.getsockname()[1], flush=True)
    try:
        serve(server, int(sys.argv[1]), float(sys.argv[2]) / 1000)
    except KeyboardInterrupt:
        pass
