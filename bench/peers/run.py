"""Compares Tine with its alternatives; started by `scripts/bench-peers`.

Each row of each system runs in its own process. All systems take turns in rounds, with every other
round in reverse order, so that other load on the machine affects all of them equally.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import report
import rows
import systems

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATIENCE_SECONDS = 600
SYNCS = "trace=fsync,fdatasync,sync_file_range,msync,syncfs"


class Run:
    def __init__(self, options, scratch):
        self.options = options
        self.scratch = pathlib.Path(scratch)
        self.scale = rows.QUICK if options.quick else rows.Scale()
        self.fair = ["chrt", "-r", "1"] if options.fair else []
        self.count = 0
        self.figures = {}
        self.problems = []
        self.loads = []

    def work(self, peer, work, given, folder, slower=0, under=()):
        """Returns the measurement of a worker, or None after recording the reason."""
        self.count += 1
        self.loads.append(os.getloadavg()[0])
        place = {"folder": str(folder), "programs": self.options.programs,
                 "postgres": self.slow_postgres if slower else self.postgres}
        asked = json.dumps({
            "place": place, "work": work, "given": {"first": self.count * 1_000_000, **given}})
        command = [*under, *self.fair, sys.executable, str(HERE / "worker.py"),
                   systems.name_of(peer), asked]
        if slower:
            command = self.slowly(slower) + command
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.problems.append(f"{peer.name}, {work}: not done in {PATIENCE_SECONDS} s")
            return None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            self.problems.append(f"{peer.name}, {work}: {last}")
            print(f"  {peer.name}, {work}: {last}", file=sys.stderr)
            return None
        return json.loads(done.stdout)

    def slowly(self, micros):
        rig = os.path.join(self.options.programs, "tine-rig")
        return [rig, "slow", "--micros", str(micros), "--folder", str(self.scratch), "--"]

    def folder(self, peer, store):
        return self.scratch / (peer.stores_of or peer.name) / store

    def prepare(self, peers, wanted):
        for store, stock in rows.stock(self.scale).items():
            for peer in peers:
                if store not in wanted:
                    continue
                if peer.durable and not peer.stores_of:
                    print(f"filling {store} of {peer.name}", file=sys.stderr)
                    self.work(peer, "prepare", {"stock": stock}, self.folder(peer, store))

    def row(self, row, peers):
        peers = [peer for peer in peers if peer.durable == row.durable and row.key not in peer.cannot]
        for round_ in range(row.rounds or self.scale.rounds):
            for peer in peers[:: -1 if round_ % 2 else 1]:
                fresh = self.scratch / peer.name / f"fresh{self.count}"
                folder = self.folder(peer, row.store) if row.store else fresh
                measured = self.work(peer, row.work, row.given, folder, row.slower)
                if measured is not None:
                    self.keep(peer, row, measured)
                shutil.rmtree(fresh, ignore_errors=True)

    def keep(self, peer, row, measured):
        """Returns the median of a round."""
        several = isinstance(measured, list)
        figure = statistics.median(measured) if several else measured
        self.figures.setdefault(peer.name, {}).setdefault(row.key, []).append(figure)
        print(f"  {row.key} {peer.name} {figure:.6g}", file=sys.stderr)

    def syncs(self, peer):
        """Returns the syncs per append, counted with strace, or by PostgreSQL itself."""
        if "postgres" in peer.needs:
            return self.work(peer, "syncs", {"turns": 100}, self.folder(peer, "syncs"))
        traced, folder, counts = self.scratch / "traced", self.folder(peer, "syncs"), []
        if not peer.stores_of:
            self.work(peer, "prepare", {"stock": {"one": 10}}, folder)
        for samples in (10, 60):
            given = {"conversation": "one", "samples": samples, "seconds": 60}
            under = ["strace", "-f", "-qq", "-e", SYNCS, "-o", str(traced)]
            if self.work(peer, "append", given, folder, under=under) is None:
                return None
            counts.append(sum("sync(" in line for line in traced.read_text().splitlines()))
        return (counts[1] - counts[0]) / 50

    @contextlib.contextmanager
    def servers(self):
        """Starts PostgreSQL with default settings, and again with slower syncs."""
        self.postgres = self.slow_postgres = None
        with contextlib.ExitStack() as stack:
            if systems.is_there("postgres") and systems.is_there("psycopg"):
                self.postgres = stack.enter_context(self.database([]))
                if self.scale.slower:
                    under = self.slowly(self.scale.slower)
                    self.slow_postgres = stack.enter_context(self.database(under))
            yield

    @contextlib.contextmanager
    def database(self, under):
        command = [*under, *self.fair, "bash", "-c",
                   'if [ "${LD_PRELOAD-}" ]; then chmod a+x "$(dirname "$LD_PRELOAD")"; fi; '
                   'exec bash "$@"', "-", str(ROOT / "scripts/postgres"),
                   "fsync=on", "full_page_writes=on", "shared_buffers=256MB"]
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(self.scratch)})
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            server.wait()


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((line.split(": ")[1] for line in info.splitlines() if "model name" in line), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB of memory, Linux {platform.release()}"


def measured(found):
    return [peer for peer in systems.all_installed() if peer.name in found["versions"]]


def again(folder):
    found = json.loads((folder / report.FIGURES).read_text())
    scale = rows.QUICK if found["quick"] else rows.Scale()
    report.write(found, rows.tables(scale, [""]), measured(found), scale, folder)


def added(found, more):
    """Adds the rounds of one run to the figures of another."""
    for peer, figures in more["figures"].items():
        for row, rounds in figures.items():
            found["figures"].setdefault(peer, {}).setdefault(row, []).extend(rounds)
    found["runs"] += more["runs"]
    found["versions"] |= more["versions"]
    found["syncs_of_an_append"] |= more["syncs_of_an_append"]
    found["problems"] += more["problems"]
    return found


def main():
    options = argparse.ArgumentParser(prog="scripts/bench-peers")
    options.add_argument("--quick", action="store_true", help="a quick run to check that it works")
    options.add_argument("--fair", action="store_true", help="run under `chrt -r 1`")
    options.add_argument("--only", action="append", help="measure only this system; repeatable")
    options.add_argument("--rows", action="append", help="measure only rows whose keys start with this; repeatable")
    options.add_argument("--folder", default=tempfile.gettempdir(), help="folder for the stores")
    options.add_argument("--programs", default="target/release", help="folder of tine, tine-bench and tine-rig")
    options.add_argument("--add", action="store_true", help="add rounds to the last run")
    options.add_argument("--again", action="store_true", help="rebuild the report from the raw figures")
    options.add_argument("--results", help="folder of the report")
    options = options.parse_args()
    if options.add or not (options.results or options.quick or options.only or options.rows):
        options.results = HERE / "results"
    if options.again:
        return again(pathlib.Path(options.results))
    options.programs = os.path.abspath(options.programs)
    peers = systems.all_installed()
    unknown = set(options.only or ()) - {peer.name for peer in peers}
    if unknown:
        raise SystemExit(f"there is no system {', '.join(sorted(unknown))}; there are: "
                         + ", ".join(peer.name for peer in peers))
    if options.only:
        # In process, Tine uses the stores that its server has filled.
        wanted = set(options.only) | {peer.stores_of for peer in peers if peer.name in options.only}
        peers = [peer for peer in peers if peer.name in wanted]
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="tine-peers-", dir=options.folder) as scratch:
        os.chmod(scratch, 0o755)
        run = Run(options, scratch)
        tables = rows.tables(run.scale, options.rows or [""])
        with run.servers():
            names = {peer.name: run.work(peer, "version", {}, scratch) for peer in peers}
            syncs = {}
            if shutil.which("strace") and not options.quick:
                syncs = {peer.name: run.syncs(peer) for peer in peers}
            every = [row for wanted in tables.values() for row in wanted]
            run.prepare(peers, {row.store for row in every})
            for row in every:
                run.row(row, peers)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"],
                            capture_output=True, text=True).stdout.strip()
    found = {
        "machine": machine(),
        "python": platform.python_version(),
        "quick": options.quick,
        "runs": [{
            "began": datetime.datetime.fromtimestamp(began, datetime.timezone.utc).isoformat(" ", "minutes"),
            "seconds": round(time.time() - began),
            "commit": commit,
            "rows": options.rows or "all",
            "fair": options.fair,
            "load_before_a_row": {"least": min(run.loads), "median": statistics.median(run.loads),
                                  "most": max(run.loads)},
        }],
        "versions": names,
        "syncs_of_an_append": syncs,
        "figures": run.figures,
        "problems": run.problems,
    }
    if options.add:
        found = added(json.loads((pathlib.Path(options.results) / report.FIGURES).read_text()), found)
        tables, peers = rows.tables(run.scale, [""]), measured(found)
    report.write(found, tables, peers, run.scale, options.results)
    if run.problems:
        raise SystemExit("not all was measured:\n" + "\n".join(run.problems))


main()
