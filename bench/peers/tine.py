"""Tine: the server over HTTP, with the embedded store or PostgreSQL, and the engine in process."""
import http.client
import json
import os
import subprocess
import urllib.parse

from peer import Peer, resident, size_of

INDEX = ("search.db", "search.db-wal", "search.db-shm")
PAGE = 1000


class Server(Peer):
    name = "tine"
    label = "**Tine**, over HTTP"
    cannot = {}

    def version(self):
        out = subprocess.run([self.program("tine"), "--version"], capture_output=True, text=True)
        return out.stdout.strip()

    def program(self, name):
        return os.path.join(self.place["programs"], name)

    def store(self):
        return self.folder

    def serve(self):
        command = [self.program("tine"), "serve", "--listen", "127.0.0.1:0", "--log", "error"]
        command += ["--rate", "1000000", "--no-pack", "--store", str(self.store())]
        self.server = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.address = self.server.stderr.readline().split(" on http://")[1].strip()

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def connect(self):
        self.client = http.client.HTTPConnection(self.address)

    def close(self):
        self.client.close()

    def ask(self, method, path, body=None, **query):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        data = body and json.dumps(body)
        self.client.request(method, "/api/v1" + path, data, {"Content-Type": "application/json"})
        answer = self.client.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(data.decode())
        return json.loads(data)

    def create(self, conversation):
        self.ask("POST", "/conversations", {"conversation_id": conversation})

    def append(self, conversation, message):
        role, text = message
        body = {"role": role, "content": text}
        self.ask("POST", f"/conversations/{conversation}/turns", body)

    def fill(self, conversation, messages):
        for start in range(0, len(messages), PAGE):
            part = [{"role": role, "content": text} for role, text in messages[start : start + PAGE]]
            self.ask("POST", f"/conversations/{conversation}/turns", {"messages": part})

    def find(self, conversation, back):
        turn = f"/turns/main~{back}"
        return self.ask("GET", turn, conversation_id=conversation, rings="false")["turn_id"]

    def fork(self, conversation, turn, name):
        self.ask("POST", f"/turns/{turn}/fork", {"name": name})

    def edit(self, conversation, turn, text, name):
        self.ask("POST", f"/turns/{turn}/edit", {"content": text})

    def path(self, conversation):
        found, query = [], {"conversation_id": conversation, "limit": PAGE}
        while True:
            page = self.ask("GET", "/turns/main/path", **query)
            found += said(page)
            if not page["next"]:
                return found
            query["cursor"] = page["next"]

    def last(self, conversation, turns):
        query = {"conversation_id": conversation, "last": turns}
        return said(self.ask("GET", "/turns/main/path", **query))

    def around(self, conversation, turn, turns):
        return said(self.ask("GET", f"/turns/{turn}/path", window=turns))

    def search(self, word):
        return self.ask("GET", "/search", q=word, limit=20)["hits"]

    def nothing(self):
        self.client.request("GET", "/healthz")
        self.client.getresponse().read()

    def rest(self):
        self.stop()
        command = [self.program("tine"), "--store", str(self.store()), "pack", "--all"]
        subprocess.run(command, check=True, capture_output=True)
        self.serve()

    def disk(self):
        return size_of(self.folder, without=INDEX)

    def indexed(self):
        return size_of(self.folder)

    def memory(self):
        return resident(self.server.pid)


def said(page):
    return [
        (turn["role"], "".join(block["text"] for block in turn["content"]))
        for turn in page["turns"]
    ]


class Engine(Server):
    """Measured by `tine-bench --peer` on stores that the server has filled."""

    name = "tine-engine"
    label = "**Tine**, in process"
    stores_of = "tine"
    cannot = dict.fromkeys(("nothing", "memory", "grown", "disk", "indexed", "rest"), "as over HTTP")

    def measure(self, work, given):
        command = [self.program("tine-bench"), "--folder", str(self.folder), "--peer", work]
        for name, value in given.items():
            command += [f"--{name}", str(value)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)


class OnPostgres(Server):
    name = "tine-postgres"
    label = "**Tine** on PostgreSQL, over HTTP"
    needs = ("psycopg", "postgres")

    def version(self):
        import postgres

        return f"{super().version()}, {postgres.version(self.place['postgres'])}"

    def store(self):
        import postgres

        self.database = postgres.database(self.place)
        return self.database

    def rest(self):
        pass

    def disk(self):
        import postgres

        return postgres.size(self.database)

    def indexed(self):
        return self.disk()


PEERS = (Server, Engine, OnPostgres)
