"""Sends five server-sent events, one every 300 ms."""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Events(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-store")
        self.send_header("connection", "close")
        self.end_headers()
        for number in range(5):
            self.wfile.write(f"id: {number}\ndata: {time.time()}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.3)
        self.close_connection = True


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Events).serve_forever()
