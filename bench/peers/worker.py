"""Measures one row of one system in its own process: `worker.py MODULE.CLASS {"place": …, "row": …}`.

Prints the measurement as JSON: a list of seconds, or a number.
"""
import contextlib
import json
import multiprocessing
import sys
import time

import systems
import workload

FEWEST = 3


def sample(given, work):
    """Returns the duration of each call, up to a number of samples or a time limit."""
    seconds, began = [], time.perf_counter()
    for number in range(given["first"], given["first"] + given["samples"]):
        if len(seconds) >= FEWEST and time.perf_counter() - began > given["seconds"]:
            break
        seconds.append(work(number))
    return seconds


def timed(act, *arguments):
    began = time.perf_counter()
    act(*arguments)
    return time.perf_counter() - began


@contextlib.contextmanager
def served(peer):
    peer.serve()
    try:
        yield
    finally:
        peer.stop()


@contextlib.contextmanager
def connected(peer):
    with served(peer):
        peer.connect()
        yield
        peer.close()


def prepare(peer, given):
    """Fills the store. Conversations that keep growing get three more turns one by one."""
    with connected(peer):
        fill(peer, given)
    return 0


def fill(peer, given):
    for start, (conversation, turns) in enumerate(given["stock"].items()):
        first = start * turns
        peer.create(conversation)
        peer.fill(conversation, [workload.message(first + n) for n in range(turns)])
        if conversation.startswith("grows"):
            for n in range(3):
                peer.append(conversation, workload.message(10_000_000 + n))
    # Builds indexes that would otherwise be built by the first query.
    peer.search("monday")


def appends(peer, given):
    """Performs a task in an existing conversation."""
    conversation = given["conversation"]

    def act(number):
        return timed(peer.append, conversation, workload.message(number))

    return sample(given, act)


def forks(peer, given):
    conversation = given["conversation"]
    turn = peer.find(conversation, given["back"])
    return sample(given, lambda number: timed(peer.fork, conversation, turn, f"f-{number}"))


def edits(peer, given):
    """Edits a different message each time."""
    conversation = given["conversation"]

    def act(number):
        turn = peer.find(conversation, given["back"] + number - given["first"])
        return timed(peer.edit, conversation, turn, workload.text(number), f"e-{number}")

    return sample(given, act)


def paths(peer, given):
    return sample(given, lambda _: timed(peer.path, given["conversation"]))


def lasts(peer, given):
    return sample(given, lambda _: timed(peer.last, given["conversation"], given["turns"]))


def arounds(peer, given):
    conversation = given["conversation"]
    turn = peer.find(conversation, given["back"])
    found = peer.around(conversation, turn, given["turns"])
    assert len(found) == given["turns"], len(found)
    return sample(given, lambda _: timed(peer.around, conversation, turn, given["turns"]))


def searches(peer, given):
    assert peer.search(given["word"])
    return sample(given, lambda _: timed(peer.search, given["word"]))


def memory(peer, given):
    peer.path(given["conversation"])
    return peer.memory()


IN_A_STORE = {
    "append": appends, "fork": forks, "edit": edits, "path": paths, "last": lasts,
    "around": arounds, "search": searches, "memory": memory,
    "nothing": lambda peer, given: sample(given, lambda _: timed(peer.nothing)),
    "disk": lambda peer, given: peer.disk(),
    "indexed": lambda peer, given: peer.indexed(),
}


def in_a_store(peer, work, given):
    with connected(peer):
        return IN_A_STORE[work](peer, given)


def opens(peer, given):
    def act(_):
        began = time.perf_counter()
        with connected(peer):
            peer.last(given["conversation"], 1)
            return time.perf_counter() - began

    return sample(given, act)


def grown(peer, given):
    """Returns the disk size of turns that were appended one by one."""
    with connected(peer):
        peer.create("grown")
        for number in range(given["turns"]):
            peer.append("grown", workload.message(number))
    return peer.disk()


def rest(peer, given):
    with connected(peer):
        peer.rest()
    return peer.disk()


def client(peer, number, given, ready, done):
    conversation = f"c{number}"
    peer.connect()
    peer.create(conversation)
    ready.wait()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < given["seconds"]:
        peer.append(conversation, workload.message(count))
        count += 1
    done.put(count / (time.perf_counter() - began))
    peer.close()


def clients(peer, given):
    """Returns the appends per second of concurrent processes, each in its own conversation."""
    for number in range(workload.POOL):
        workload.text(number)
    fork = multiprocessing.get_context("fork")
    ready, done = fork.Barrier(given["clients"]), fork.Queue()
    processes = [
        fork.Process(target=client, args=(peer, number, given, ready, done))
        for number in range(given["clients"])
    ]
    with served(peer):
        for process in processes:
            process.start()
        rates = [done.get(timeout=120) for _ in processes]
        for process in processes:
            process.join()
    return sum(rates)


def syncs(peer, given):
    """Returns the syncs of PostgreSQL's log per append, by its own count."""
    import psycopg

    def counted():
        with psycopg.connect(peer.place["postgres"]) as session:
            return session.execute("SELECT wal_sync FROM pg_stat_wal").fetchone()[0]

    # A session reports its counts when it ends, or after a delay.
    with connected(peer):
        peer.create("one")
        time.sleep(1.5)
        before = counted()
        for number in range(given["turns"]):
            peer.append("one", workload.message(number))
    time.sleep(1.5)
    return (counted() - before) / given["turns"]


WHOLE = {"syncs": syncs, "prepare": prepare, "open": opens, "grown": grown, "rest": rest, "clients": clients}


def main(name, asked):
    peer = systems.find(name)(asked["place"])
    work, given = asked["work"], asked["given"]
    if work == "version":
        return peer.version()
    if hasattr(peer, "measure"):
        return peer.measure(work, given)
    if work in WHOLE:
        return WHOLE[work](peer, given)
    return in_a_store(peer, work, given)


print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
