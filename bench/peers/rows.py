"""The measurements: tables of rows, each a task that every system performs."""
import dataclasses

RARE, COMMON = "monday", "editor"


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    title: str
    # The name of the task in the worker, and its arguments.
    work: str
    given: dict = dataclasses.field(default_factory=dict)
    # "time" in seconds, "rate" per second (higher is better), or "bytes".
    unit: str = "time"
    # The prepared store; a new folder if there is none.
    store: str | None = None
    # Microseconds added to every sync.
    slower: int = 0
    # The number of rounds, if it differs from the other rows.
    rounds: int | None = None
    # Whether the row is for systems that sync before they acknowledge, for the others, or for both.
    durable: bool = True

    @property
    def name(self):
        """Returns the title for use outside its table."""
        return f"durable appends per second, {self.title}" if self.unit == "rate" else self.title


@dataclasses.dataclass(frozen=True)
class Scale:
    depths: tuple = (10, 1_000, 10_000)
    clients: tuple = (1, 8, 64)
    conversations: int = 100
    turns: int = 1_000
    grown: int = 1_000
    samples: int = 100
    seconds: float = 1
    crowded_seconds: float = 2
    rounds: int = 3
    slower: int = 1_000


QUICK = Scale(
    depths=(10, 200), clients=(1, 4), conversations=4, turns=250, grown=100, samples=5,
    seconds=0.2, crowded_seconds=0.2, rounds=1, slower=0)


def number(count):
    return f"{count:,}"


def stock(scale):
    """Returns the conversations of the prepared stores with their number of turns."""
    deep = {f"grows{depth}": depth for depth in scale.depths}
    deep |= {f"rests{depth}": depth for depth in scale.depths[1:]}
    return {"deep": deep, "large": {f"c{n}": scale.turns for n in range(scale.conversations)}}


def clients(scale, slower=0, durable=True):
    named = "slow" if slower else "clients" if durable else "lazy"
    for count in scale.clients:
        title = f"{count} client{'s' if count > 1 else ''}"
        title += f", syncs {slower // 1000} ms slower" if slower else ""
        given = {"clients": count, "seconds": scale.crowded_seconds}
        yield Row(f"{named}{count}", title, "clients", given, "rate", None, slower, None, durable)


def tables(scale, beginnings):
    """Returns the rows whose keys start with one of the prefixes, by table."""
    every = all_tables(scale).items()
    return {
        title: [row for row in wanted if row.key.startswith(tuple(beginnings))]
        for title, wanted in every
    }


def all_tables(scale):
    deepest = scale.depths[-1]
    rests, all_turns = f"rests{deepest}", scale.conversations * scale.turns
    taken = {"samples": scale.samples, "seconds": scale.seconds}

    def deep(work, depth, **given):
        given = {**taken, "conversation": f"grows{depth}", **given}
        return Row(f"{work}{depth}", f"{work}, {number(depth)} turns", work, given, store="deep")

    def reading(key, title, work, **given):
        return Row(key, title, work, {**taken, **given}, store="deep")

    def large(key, title, work, unit="time", rounds=None, **given):
        return Row(key, title, work, {**taken, **given}, unit, "large", rounds=rounds)

    slowly = list(clients(scale, scale.slower)) if scale.slower else []
    return {
        "Durable appends per second": [*clients(scale), *slowly],
        "Non-durable appends per second": list(clients(scale, durable=False)),
        "Growing conversations, one client": [
            *(deep("append", depth) for depth in scale.depths),
            *(deep("fork", depth, back=2) for depth in scale.depths),
            deep("edit", scale.depths[1], back=scale.depths[1] // 2),
        ],
        "Reading, one client": [
            *(
                reading(f"path{depth}", f"path of {number(depth)}", "path",
                        conversation=f"rests{depth}")
                for depth in scale.depths[1:]
            ),
            reading("last", f"last 40 of {number(deepest)}", "last", turns=40, conversation=rests),
            reading("around", f"40 in the middle of {number(deepest)}", "around", turns=40,
                    back=deepest // 2, conversation=rests),
            large("rare", f"search in {number(all_turns)}: a word in 0.6 %", "search", word=RARE,
                  conversation="c1"),
            large("common", "the same search: a word in 10 %", "search", word=COMMON, conversation="c1"),
        ],
        "Opening, memory and disk": [
            large("nothing", "empty request", "nothing", conversation="c1"),
            large("open", f"open {number(all_turns)} turns, read one", "open", conversation="c1"),
            large("memory", "memory after reading a path", "memory", "bytes", conversation="c1"),
            Row("grown", f"disk per turn, {number(scale.grown)} one by one", "grown",
                {"turns": scale.grown}, "bytes", rounds=1),
            large("disk", f"disk per turn, {number(all_turns)} in bulk", "disk", "bytes", 1),
            large("indexed", "disk per turn, the same with a full-text index", "indexed", "bytes", 1),
            large("rest", "disk per turn, the same compacted", "rest", "bytes", 1),
        ],
    }
