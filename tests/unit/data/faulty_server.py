"""A loopback HTTP server that serves files well or badly, as a test asks."""

import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit


@dataclass
class Route:
    """How one path is served."""

    content: bytes = b""
    status: int = 200
    """A status other than 200 is sent instead of the content."""
    failures: int = 0
    """How many of the first requests get HTTP 503."""
    break_after: int | None = None
    """Bytes after which each connection closes early."""
    pause: float = 0.0
    """Seconds before each kilobyte."""
    stall: float = 0.0
    """Seconds of silence before the first byte."""
    ranges: bool = True
    """Whether the server supports resumption."""
    declared: int | None = None
    """A false Content-Length."""
    chunked: bool = False
    location: str | None = None
    """Where to redirect."""
    false_range: bool = False
    """Whether a resumption is answered with a different range than requested."""
    gate: threading.Event | None = None
    """A gate that holds back the content until the test opens it."""
    requests: list[str | None] = field(default_factory=list)
    """The Range header of each request."""


class FaultyServer:
    """Serves `routes` (path -> Route) on 127.0.0.1; use as a context manager."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.close_connection = True
                server.answer(self)

            def log_message(self, *_arguments: object) -> None:
                """Keep the test's output clean."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def add(self, path: str, content: bytes = b"", **faults: object) -> Route:
        self.routes[path] = Route(content, **faults)
        return self.routes[path]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        route = self.routes.get(urlsplit(handler.path).path.lstrip("/"), Route(status=404))
        wanted = handler.headers.get("Range")
        route.requests.append(wanted)
        if len(route.requests) <= route.failures:
            self._refuse(handler, 503)
        elif route.location is not None:
            handler.send_response(302)
            handler.send_header("Location", route.location)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        elif route.status != 200:
            self._refuse(handler, route.status)
        else:
            offset = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and route.ranges else 0
            if offset >= len(route.content) > 0:
                self._refuse(handler, 416)
            else:
                self._send(handler, route, offset)

    @staticmethod
    def _refuse(handler: BaseHTTPRequestHandler, status: int) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, route: Route, offset: int) -> None:
        body = route.content[offset:]
        handler.send_response(206 if offset else 200)
        if offset:
            begin = 0 if route.false_range else offset
            handler.send_header(
                "Content-Range", f"bytes {begin}-{len(route.content) - 1}/{len(route.content)}"
            )
        if route.chunked:
            handler.send_header("Transfer-Encoding", "chunked")
        else:
            handler.send_header(
                "Content-Length", str(len(body) if route.declared is None else route.declared)
            )
        handler.end_headers()
        handler.wfile.flush()
        time.sleep(route.stall)
        if route.gate is not None:
            route.gate.wait(60)
        try:
            for i in range(0, min(len(body), route.break_after or len(body)), 1024):
                time.sleep(route.pause)
                piece = body[i : min(i + 1024, route.break_after or len(body))]
                handler.wfile.write(
                    f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if route.chunked else piece
                )
            if route.chunked and route.break_after is None:
                handler.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            """The client closed the connection."""
