"""A proxy before PostgreSQL that can let a COMMIT through and then cut the line."""

import contextlib
import socket
import threading
from types import TracebackType

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class CuttingProxy:
    """Forwards bytes both ways. When armed, the next COMMIT gets no answer."""

    def __init__(self, dsn: str) -> None:
        self._server = conninfo_to_dict(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.armed = threading.Event()
        self.cuts = 0
        self.refusals = 0
        """How many further connections are closed at once."""
        self.dsn = make_conninfo(dsn, host="127.0.0.1", port=self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "CuttingProxy":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refusals > 0:
                self.refusals -= 1
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._server["host"]), int(self._server.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _serve(self, client: socket.socket) -> None:
        cut = threading.Event()
        with client, self._connect() as server:
            back = threading.Thread(target=self._answers, args=(server, client, cut), daemon=True)
            back.start()
            while data := _read(client):
                if self.armed.is_set() and b"COMMIT" in data:
                    self.armed.clear()
                    cut.set()
                    self.cuts += 1
                server.sendall(data)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            back.join()

    def _answers(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        while data := _read(server):
            if cut.is_set():
                break
            client.sendall(data)
        with contextlib.suppress(OSError):  # the client may have gone first
            client.shutdown(socket.SHUT_RDWR)


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except OSError:
        return b""
