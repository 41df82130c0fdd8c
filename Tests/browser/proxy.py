"""A way to the server that tests can cut, and that can lose answers."""
import socket
import threading


class Proxy:
    """Carries bytes between a port of its own and the server's. A browser that is only set offline keeps its sockets
    open and is told everything later; a cut here is a real one."""

    def __init__(self, port):
        self.target = port
        self.isCut = False
        self.pairs = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.isCut:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.pairs.add((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.isCut = True
        with self.lock:
            for pair in self.pairs:
                for each in pair:
                    try:
                        each.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            self.pairs.clear()

    def mend(self):
        self.isCut = False

    def close(self):
        self.cut()
        self.listener.close()
