"""Runs an ACP agent as a child process and speaks JSON-RPC with it over stdio."""

import json
import queue
import subprocess
import threading


class Refused(Exception):
    """The agent returned an error."""

    def __init__(self, method, error):
        super().__init__(f"{method}: {error}")
        self.code = error.get("code")
        self.data = error.get("data") if isinstance(error.get("data"), dict) else {}


class Gone(Exception):
    """The agent exited or did not respond in time."""


class AgentProcess:
    """Starts an agent, sends requests and keeps every update in order of arrival."""

    def __init__(self, command, timeout, cwd=None):
        self.timeout = timeout
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd
        )
        self.answers = {}
        self.updates = []
        self.changed = threading.Condition()
        self.ended = False
        self.next = 0
        self.writing = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" in message and "id" in message:
                self._answer(message)
            with self.changed:
                if message.get("method") == "session/update":
                    self.updates.append(message["params"])
                elif "method" not in message and message.get("id") in self.answers:
                    self.answers[message["id"]].put(message)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            for waiting in self.answers.values():
                waiting.put(None)
            self.changed.notify_all()

    def _answer(self, request):
        """Answers a request of the agent: permission requests are cancelled, all others refused."""
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "session/request_permission":
            answer["result"] = {"outcome": {"outcome": "cancelled"}}
        else:
            answer["error"] = {"code": -32601, "message": "method not supported"}
        self._write(answer)

    def _write(self, message):
        try:
            with self.writing:
                self.process.stdin.write(json.dumps(message).encode() + b"\n")
                self.process.stdin.flush()
        except OSError as error:
            raise Gone(str(error)) from error

    def notify(self, method, params):
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, method, params):
        """Sends a request and returns a handle for `wait`."""
        with self.changed:
            self.next += 1
            number = self.next
            self.answers[number] = queue.Queue()
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number, method

    def wait(self, sent):
        number, method = sent
        try:
            message = self.answers[number].get(timeout=self.timeout)
        except queue.Empty:
            raise Gone(f"no response to {method} within {self.timeout} s") from None
        if message is None:
            raise Gone(f"the agent exited before it responded to {method}")
        if "error" in message:
            raise Refused(method, message["error"])
        return message["result"]

    def ask(self, method, params):
        return self.wait(self.send(method, params))

    def seen(self, session, since=0):
        """Returns the updates of a session."""
        with self.changed:
            found = self.updates[since:]
        return [params["update"] for params in found if params.get("sessionId") == session]

    def mark(self):
        with self.changed:
            return len(self.updates)

    def await_update(self, session, since, wanted, seconds):
        """Returns the first update that `wanted` accepts, or None on timeout."""
        def find():
            updates = self.updates[since:]
            mine = (params["update"] for params in updates if params.get("sessionId") == session)
            return next((update for update in mine if wanted(update)), None)

        with self.changed:
            self.changed.wait_for(lambda: find() is not None or self.ended, seconds)
            return find()

    def end(self):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
