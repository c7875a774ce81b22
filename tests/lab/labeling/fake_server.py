"""A local OpenAI-compatible server with injected faults, which counts what a caller paid for.

What it answers depends on the request alone, so an undisturbed run and a disturbed one must agree.
"""

import argparse
import hashlib
import json
import random
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hydra_core.base.types import DIMENSIONS


class FakeServer(ThreadingHTTPServer):
    """Listens on a free port of the loopback.

    Args:
        busy, broken, malformed: Shares of requests answered 429, 5xx, and with rubbish (paid).
        remembers: Answers a repeated Idempotency-Key from memory, unpaid.
        delay_s: Time an answer takes.

    Attributes:
        usage: What it says of the tokens.
        write: Makes the answer of a request; bytes are sent as the whole body.
        headers: Those of the last request.
        refuse: (status, JSON) of a request that is turned down unpaid; None where it is answered.
        rubbish_once: No request is answered with rubbish twice, so that none is given up by chance.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *, busy=0.0, broken=0.0, malformed=0.0, remembers=True, delay_s=0.0, port=0):
        self.busy, self.broken, self.malformed = busy, broken, malformed
        self.remembers, self.delay_s = remembers, delay_s
        self.paid = Counter()  # requests charged, by (idempotency key)
        self.statuses = Counter()
        self.rubbish_once, self._spoilt = False, set()
        self.usage, self.write = {"prompt_tokens": 120, "completion_tokens": 40}, content
        self.refuse, self.headers = lambda _: None, None
        self._memory = {}
        self._lock = threading.Lock()
        self._rng = random.Random(7)
        super().__init__(("127.0.0.1", port), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def paid_twice(self):
        """Calls charged more than once."""
        return sum(count - 1 for count in self.paid.values())

    def handle_error(self, *_):
        """A caller that was killed resets its connections; that is the point."""

    def respond(self, key, body):
        """(status, JSON or text) for a request."""
        with self._lock:
            if refused := self.refuse(body):
                return refused
            if self.remembers and key in self._memory:
                return 200, self._memory[key]
            drawn = self._rng.random()
            if drawn < self.busy:
                return 429, {"error": {"message": "slow down"}}
            if drawn < self.busy + self.broken:
                return self._rng.choice((500, 502, 503)), {"error": {"message": "oops"}}
            rubbish = drawn < self.busy + self.broken + self.malformed
            asked = json.dumps(body, sort_keys=True)
            if rubbish and self.rubbish_once:
                rubbish = asked not in self._spoilt
                self._spoilt.add(asked)
            self.paid[key] += 1
            written = self.write(body, rubbish)
            if isinstance(written, bytes):
                return 200, written
            answer = {"choices": [{"message": {"content": written}}], "usage": self.usage}
            self._memory[key] = answer
            return 200, answer


def content(body, rubbish=False):
    """A verdict for a judge, an answer for an arm; a function of the request."""
    asked = "\n".join(turn["content"] for turn in body["messages"])
    digest = hashlib.sha256((body["model"] + asked).encode()).digest()
    asked = re.sub(r"(=== [A-Z ]+) [0-9a-f]{12} ===", r"\1 ===", asked)
    if "=== ANSWER A ===" not in asked:
        return "" if rubbish else f"{body['model']} says {digest[:6].hex()}"
    if rubbish:
        return '{"A": "?"'
    first_is_strong = asked.index("=== ANSWER A ===\nstrong") > 0 if "A ===\nstrong" in asked else 0
    request = hashlib.sha256(asked.split("=== ANSWER A")[0].encode()).digest()
    strong = {name: 3 + request[i] % 3 for i, name in enumerate(DIMENSIONS)}
    cheap = {name: 1 + request[i + 4] % 5 for i, name in enumerate(DIMENSIONS)}
    # The judge likes what stands first a little: position bias that the two orders cancel.
    a, b = (strong, cheap) if first_is_strong else (cheap, strong)
    a = {name: min(5, score + (digest[0] % 4 == 0)) for name, score in a.items()}
    verdict = {"A": a, "B": b, "winner": "A" if sum(a.values()) > sum(b.values()) else "B"}
    return "```json\n" + json.dumps({**verdict, "quality_gap": "small"}) + "\n```"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers = self.headers
        if self.server.delay_s:
            time.sleep(self.server.delay_s)
        status, answer = self.server.respond(self.headers.get("Idempotency-Key", ""), body)
        self.server.statuses[status] += 1
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if raw.startswith(b"\x1f\x8b"):
            self.send_header("Content-Encoding", "gzip")
        if status == 429:
            self.send_header("Retry-After", "0.05")
        self.end_headers()
        try:
            self.wfile.write(raw)
        except OSError:
            self.close_connection = True  # the caller was killed; it has been charged all the same

    def log_message(self, *_):
        pass


def settings(url, **more):
    """A label.yaml for a server at `url`, as text."""
    lines = ["schema: hydra.label/v1", f"budget_usd: {more.pop('budget', 100)}"]
    lines += [f"{key}: {value}" for key, value in more.items() if key != "honours"]
    lines.append("servers:")
    for role in ("cheap", "strong", "judge"):
        lines += [
            f"  {role}:",
            f"    model: {role}-model",
            f"    base_url: {url}",
            "    input_usd_per_mtok: 1",
            "    output_usd_per_mtok: 2",
            "    max_tokens: 100",
            "    concurrency: 16",
            f"    honours_idempotency_key: {more.get('honours', 'true')}",
        ]
    return "\n".join(lines) + "\n"


def messages(count):
    """Self-contained messages, as JSONL text."""
    texts = (
        f"Write function number {i} that sorts a list of pairs by key {i % 7}" for i in range(count)
    )
    rows = ({"id": f"m{i:05d}", "text": text, "lang": "en"} for i, text in enumerate(texts))
    return "".join(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":  # by hand: try `label` against it
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8720)
    options = parser.parse_args()
    server = FakeServer(busy=0.05, broken=0.02, malformed=0.01, port=options.port)
    threading.Event().wait()
