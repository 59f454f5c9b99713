"""A gRPC service that returns what it gets. Messages are plain bytes, so that no code is generated."""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc


def echo(request, _):
    return request


def echo_stream(requests, _):
    yield from requests


def main():
    handlers = {
        "Call": grpc.unary_unary_rpc_method_handler(echo),
        "Limited": grpc.unary_unary_rpc_method_handler(echo),
        "Stream": grpc.stream_stream_rpc_method_handler(echo_stream),
    }
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo.Echo", handlers)])
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    server.wait_for_termination()


main()
