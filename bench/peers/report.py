"""Writes the results of a run: a Markdown page, the raw figures as JSON, and a plot."""
import json
import pathlib

import plot
from recorded import SYSTEMS

DASH = "–"
FIGURES = "peers.json"


def show(figure, unit):
    if unit == "rate":
        return f"{figure:,.0f}/s" if figure >= 10 else f"{figure:.1f}/s"
    steps = {
        "time": ((1, "s", 1), (1e-3, "ms", 1e3), (0, "µs", 1e6)),
        "bytes": ((2**20, "MiB", 2**-20), (10 * 2**10, "KiB", 2**-10), (0, "B", 1)),
    }[unit]
    name, factor = next((name, factor) for least, name, factor in steps if figure >= least)
    value = figure * factor
    return f"{value:,.0f} {name}" if value >= 100 or name == "B" else f"{value:.3g} {name}"


class Report:
    def __init__(self, found, tables, peers, scale):
        self.found, self.tables, self.peers, self.scale = found, tables, peers, scale
        self.notes = []

    def figure(self, peer, row):
        """Returns the best figure of a row in the row's unit; disk is per turn."""
        rounds = self.found["figures"].get(peer.name, {}).get(row.key)
        if not rounds:
            return None
        best = max(rounds) if row.unit == "rate" else min(rounds)
        if not row.title.startswith("disk per turn"):
            return best
        in_bulk = self.scale.conversations * self.scale.turns
        return best / (self.scale.grown if row.key == "grown" else in_bulk)

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)
        return f" [^{self.notes.index(text) + 1}]"

    def cell(self, peer, row):
        figure = self.figure(peer, row)
        if figure is None:
            why = peer.cannot.get(row.key)
            return DASH + (self.note(why) if why else "")
        note = peer.notes.get(row.work)
        return show(figure, row.unit) + (self.note(note) if note else "")

    def table(self, title, wanted):
        wanted = [row for row in wanted if any(
            row.key in figures for figures in self.found["figures"].values())]
        if not wanted:
            return []
        lines = [f"## {title}", "", "| | " + " | ".join(row.title for row in wanted) + " |",
                 "| --- |" + " ---: |" * len(wanted)]
        for peer in self.peers:
            if any(self.figure(peer, row) is not None for row in wanted):
                cells = [self.cell(peer, row) for row in wanted]
                lines.append(f"| {peer.label} | " + " | ".join(cells) + " |")
        for label, figures in SYSTEMS.items():
            if any(row.key in figures for row in wanted):
                cells = [figures.get(row.key, DASH) for row in wanted]
                mark = self.note("measured earlier, not in this run, because no package registry has it")
                lines.append(f"| *{label}*{mark} | " + " | ".join(cells) + " |")
        return [*lines, ""]

    def beside(self):
        """Compares Tine with the best other system in each row."""
        tine = [peer for peer in self.peers if peer.name in ("tine", "tine-engine")]
        others = [peer for peer in self.peers if not peer.name.startswith("tine")]
        lines = [
            "## Tine compared with the best other system", "",
            "The factor by which Tine is better, over HTTP and in process; a factor below 1 means that "
            "it is worse. Hand-written tables and files do less: they keep no versions, hashes, log, "
            "undo or idempotency keys.", "",
            "| row | best of LangGraph and git | over HTTP | in process "
            "| best of tables and files | over HTTP | in process |",
            "| --- | --- | ---: | ---: | --- | ---: | ---: |"]
        for wanted in self.tables.values():
            for row in wanted:
                if all(self.figure(peer, row) is None for peer in tine):
                    continue
                cells = []
                for less in (False, True):
                    there = [peer for peer in others if peer.does_less == less]
                    cells += self.best_of(there, row, tine)
                lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
        return [*lines, ""]

    def best_of(self, others, row, tine):
        there = [(self.figure(peer, row), peer) for peer in others]
        there = [(figure, peer) for figure, peer in there if figure]
        if not there:
            return [DASH] * (1 + len(tine))
        choose = max if row.unit == "rate" else min
        best, who = choose(there, key=lambda pair: pair[0])
        cells = [f"{who.label}, {show(best, row.unit)}"]
        for peer in tine:
            figure = self.figure(peer, row)
            if figure is None:
                cells.append(DASH)
                continue
            better = figure / best if row.unit == "rate" else best / figure
            shown = f"{better:.2f}" if better < 10 else f"{better:.0f}"
            cells.append(f"**{shown}**" if better < 1 else shown)
        return cells

    def head(self):
        runs = self.found["runs"]
        return [
            "# Tine compared with other systems", "",
            "`scripts/bench-peers` wrote this report. `peers.json` has the figures of every round.", "",
            f"- Machine: {self.found['machine']}.",
            *map(describe, runs),
            "- All systems store the same messages of one kilobyte of English words. Each row of each "
            "system runs in its own process. The systems take turns in rounds, and every other round "
            "runs in reverse order. A figure is the best median of all rounds (for rates, the best "
            "round), because other load on the machine can only make a round worse.",
            f"- All systems except Tine's engine are used from Python {self.found['python']}: Tine over "
            "HTTP (`http.client` with keep-alive), the others through their own modules in the "
            "client's process. Each client is a process.",
            "- Durable appends are compared only with durable ones. The number of syncs was counted:", "",
            *self.durability(), "", "![Bar charts of some rows](peers.svg)", "",
        ]

    def durability(self):
        lines = ["| | version | syncs per append |", "| --- | --- | ---: |"]
        for peer in self.peers:
            syncs = self.found["syncs_of_an_append"].get(peer.name)
            counted = DASH if syncs is None else f"{syncs:.2g}"
            lines.append(f"| {peer.label} | {self.found['versions'][peer.name] or DASH} | {counted} |")
        return lines

    def page(self):
        body = [line for title, wanted in self.tables.items() for line in self.table(title, wanted)]
        notes = [f"[^{number}]: {text}." for number, text in enumerate(self.notes, 1)]
        return "\n".join([*self.head(), *body, *self.beside(), *notes]).rstrip() + "\n"


def describe(run):
    load = run["load_before_a_row"]
    rows = "all rows" if run["rows"] == "all" else "rows " + ", ".join(run["rows"])
    fair = ", under `chrt -r 1`" if run["fair"] else ""
    return (
        f"- {run['began']}, {run['seconds'] // 60 + 1} minutes, commit {run['commit']}, {rows}"
        f"{fair}. Load before each row {load['least']:.0f} to {load['most']:.0f}, median "
        f"{load['median']:.0f}, including the benchmark's own.")


def write(found, tables, peers, scale, folder):
    report = Report(found, tables, peers, scale)
    page = report.page()
    if not folder:
        print(page)
        return
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.md").write_text(page)
    (folder / FIGURES).write_text(json.dumps(found, indent=1) + "\n")
    (folder / "peers.svg").write_text(plot.draw(report))
    print(f"written to {folder}")
