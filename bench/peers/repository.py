"""One commit per message in a git repository, with git's plumbing commands."""
import os
import resource
import subprocess

from peer import Peer

# The empty tree; the message is in the commit.
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
FORM = "--format=%an%x00%B%x01"


class Repository(Peer):
    name = "git"
    label = "git"
    needs = ("git",)
    fsync = "all"
    notes = {
        "search": "`git log --grep`, newest first, not ranked",
        "memory": "the largest of its processes, which exit after each command",
    }

    def version(self):
        return subprocess.run(["git", "--version"], capture_output=True, text=True).stdout.strip()

    def git(self, *arguments, stdin=None):
        command = ["git", "-c", f"core.fsync={self.fsync}", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, input=stdin, capture_output=True
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        return done.stdout

    def serve(self):
        self.environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
        for who in ("AUTHOR", "COMMITTER"):
            self.environment[f"GIT_{who}_EMAIL"] = "nobody@example.org"
            self.environment[f"GIT_{who}_NAME"] = "user"
        if not (self.folder / "HEAD").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self.git("init", "--quiet", "--bare", ".")
            self.git("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"")

    def connect(self):
        self.tips = {}

    def commit(self, parent, message):
        role, text = message
        self.environment["GIT_AUTHOR_NAME"] = role
        parents = ["-p", parent] if parent else []
        made = self.git("commit-tree", EMPTY, *parents, stdin=text.encode())
        return made.decode().strip()

    def tip(self, conversation):
        if conversation not in self.tips:
            found = self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{conversation}")
            self.tips[conversation] = found.decode().strip()
        return self.tips[conversation]

    def append(self, conversation, message):
        tip = self.tip(conversation)
        new = self.commit(tip, message)
        self.git("update-ref", f"refs/heads/{conversation}", new, tip or "0" * 40)
        self.tips[conversation] = new

    def fill(self, conversation, messages):
        """Imports the messages with fast-import, as one pack."""
        stream = []
        for number, (role, text) in enumerate(messages):
            data = text.encode()
            stream.append(
                f"commit refs/heads/{conversation}\nmark :{number + 1}\n"
                f"author {role} <nobody@example.org> {number} +0000\n"
                f"committer {role} <nobody@example.org> {number} +0000\ndata {len(data)}\n".encode()
                + data + b"\n"
            )
            tip = self.tip(conversation)
            if number == 0 and tip:
                stream.append(f"from {tip}\n".encode())
        self.git("fast-import", "--quiet", stdin=b"".join(stream))
        del self.tips[conversation]

    def find(self, conversation, back):
        return self.git("rev-parse", f"refs/heads/{conversation}~{back}").decode().strip()

    def fork(self, conversation, turn, name):
        self.git("update-ref", f"refs/heads/{name}", turn)

    def edit(self, conversation, turn, text, name):
        parent = self.git("rev-parse", f"{turn}^").decode().strip()
        self.git("update-ref", f"refs/heads/{name}", self.commit(parent, ("user", text)))

    def log(self, *arguments):
        out = self.git("log", FORM, *arguments).decode()
        return [tuple(each.strip("\n").split("\0")) for each in out.split("\x01")[:-1]]

    def path(self, conversation):
        return self.log("--reverse", f"refs/heads/{conversation}")

    def last(self, conversation, turns):
        return self.log("--reverse", f"--max-count={turns}", f"refs/heads/{conversation}")

    def around(self, conversation, turn, turns):
        """Counts from the end, because git commits do not link to their children."""
        behind = self.git("rev-list", "--count", f"{turn}..refs/heads/{conversation}")
        skip = f"--skip={int(behind) - turns // 2 + 1}"
        return self.log("--reverse", skip, f"--max-count={turns}", f"refs/heads/{conversation}")

    def search(self, word):
        return self.log("--all", "--fixed-strings", f"--grep={word}", "--max-count=20")

    def rest(self):
        self.git("repack", "-a", "-d", "-q")
        self.git("prune-packed", "-q")

    def memory(self):
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


class RepositoryLazy(Repository):
    name = "git-lazy"
    label = "git, `core.fsync = none`"
    fsync = "none"
    durable = False


PEERS = (Repository, RepositoryLazy)
