"""A local chat-completions server whose model sends reasoning before it echoes the question.

Prints its URL and serves until standard input ends.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = request["messages"][-1]["content"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        deltas = [{"reasoning_content": "hm, "}, {"reasoning_content": "yes"}]
        deltas += [{"content": word + " "} for word in question.split(" ")]
        for delta, finish in [(delta, None) for delta in deltas] + [({}, "stop")]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            event = {"id": "x", "model": "thinker", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()


main()
