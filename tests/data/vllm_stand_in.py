"""Imitates the processes of a `vllm` command: serves on loopback, with a worker that does not exit.

The environment variable MODE makes it fail: `broken`, `silent`, or `strays` (a child in another session).
"""

import http.server
import json
import os
import subprocess
import sys
import time

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""


class Handler(http.server.BaseHTTPRequestHandler):
    tokens = 0

    def do_GET(self):
        if self.path == "/end":
            os._exit(3)
        Handler.tokens += 100
        self.send_response(200)
        self.end_headers()
        said = f'vllm:generation_tokens_total{{a="b"}} {self.tokens}\nvllm:num_requests_running{{a="b"}} 2\n'
        self.wfile.write(said.encode())

    def log_message(self, *_):
        pass


with open(sys.argv[sys.argv.index("--config") + 1]) as file:
    config = json.load(file)
mode = os.environ.get("MODE", "")
print("(Worker pid=1) INFO Starting to load model", config["model"], flush=True)
if mode == "broken":
    print("(EngineCore pid=2) ValueError: head_dim 7 is odd")
    print("(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.")
    sys.exit(1)
worker = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)
worker.stdout.readline()
if mode == "strays":
    subprocess.Popen(["setsid", "sleep", "61"])
if mode == "silent":
    time.sleep(60)
server = http.server.HTTPServer(("127.0.0.1", config["port"]), Handler)
print("INFO: Application startup complete.", flush=True)
server.serve_forever()
