"""A server that can be away for a while, for tests of clients: a proxy to a server that stays."""

import socket
import threading


class Proxy:
    """Passes connections on to a port of this machine. While it is away, its own port refuses them."""

    def __init__(self, to):
        self._to = to
        self._lock = threading.Lock()
        self._open = set()
        self._listener = None
        self.port = 0
        self.come_back()

    def come_back(self):
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def leave(self):
        """Refuse connections, and end those that are open."""
        # accept does not end when another thread closes its socket
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            _shut(end)

    def stop(self):
        if self._listener.fileno() >= 0:
            self.leave()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            with self._lock:
                self._open |= {near, far}
                is_away = listener is not self._listener or listener.fileno() < 0
            if is_away:
                _shut(near)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source, target):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            _shut(end)
        with self._lock:
            self._open.discard(source)
        source.close()


def _shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
