"""What is measured: tables of rows, each one piece of work that every system does."""
import dataclasses

RARE, COMMON = "monday", "editor"


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    title: str
    # The work, by the name that the worker knows it by, and what it is given.
    work: str
    given: dict = dataclasses.field(default_factory=dict)
    # "time" in seconds, "rate" in a second, or "bytes"; of rates more is better.
    unit: str = "time"
    # The prepared store that it is done in; without one, a fresh folder.
    store: str | None = None
    # Microseconds by which every sync is slower.
    slower: int = 0
    # How often, if not as often as the others.
    rounds: int | None = None
    # Whether it is of systems that sync before they acknowledge, of those that do not, or both.
    durable: bool = True

    @property
    def name(self):
        """Its title where its table is not named."""
        return f"durable appends in a second, {self.title}" if self.unit == "rate" else self.title


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
    """The conversations of the prepared stores, and how many turns each has."""
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
    """Those rows whose keys begin so, by table."""
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
        "Durable appends in a second": [*clients(scale), *slowly],
        "Appends in a second that a power loss may take back": list(clients(scale, durable=False)),
        "As a conversation grows, one client": [
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
            large("common", "search there: a word in 10 %", "search", word=COMMON, conversation="c1"),
        ],
        "At rest": [
            large("nothing", "a request that does nothing", "nothing", conversation="c1"),
            large("open", f"open {number(all_turns)} turns, read one", "open", conversation="c1"),
            large("memory", "memory then, after a path", "memory", "bytes", conversation="c1"),
            Row("grown", f"disk a turn, {number(scale.grown)} one by one", "grown",
                {"turns": scale.grown}, "bytes", rounds=1),
            large("disk", f"disk a turn, {number(all_turns)} in bulk", "disk", "bytes", 1),
            large("indexed", "disk a turn, the same with an index of words", "indexed", "bytes", 1),
            large("rest", "disk a turn, the same made small", "rest", "bytes", 1),
        ],
    }
