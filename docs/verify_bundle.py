#!/usr/bin/env python3
"""Recomputes every hash of a Tine bundle, using only Python's standard library.

    python3 verify_bundle.py trip.jsonl        (or - for standard input)

Prints `ok: ...` and exits 0, or names every record that fails and exits 1.
bundle.md describes the format. Purged content is reported, because its hash cannot be recomputed.
"""
import base64, hashlib, json, re, sys

getattr(sys, "set_int_max_str_digits", int)(0)  # integers of any size keep their digits
sys.setrecursionlimit(10_000)                   # JSON may be nested 512 deep

# ---- canonical JSON: RFC 8785, except that integers beyond 2**53 keep their digits --------

def number(x):
    """Formats a double as ECMAScript does. Python's repr finds the same shortest digits."""
    if x != x or x in (float("inf"), float("-inf")):
        raise ValueError("a number is too large for a double")
    if x == 0:
        return "0"
    sign, mantissa, exponent = re.fullmatch(r"(-?)([0-9.]+)(?:e([+-]\d+))?", repr(x)).groups()
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)         # position of the point in `digits`
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    n = len(digits)
    if n <= point <= 21:
        text = digits + "0" * (point - n)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        e = point - 1
        text = digits[0] + ("." + digits[1:] if n > 1 else "") + ("e+" if e > 0 else "e-") + str(abs(e))
    return sign + text

def jcs(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(jcs(key) + ":" + jcs(value[key]) for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        float(value)                                # raises OverflowError beyond a double
        return str(value)
    return json.dumps(value, ensure_ascii=False)    # true, false, null and strings

def sha256(value):
    return "sha256:" + hashlib.sha256(jcs(value).encode()).hexdigest()

def parse(line):
    """Parses one object in canonical form; a repeated key or a NaN does not survive the round trip."""
    value = json.loads(line.decode())
    if not isinstance(value, dict) or jcs(value).encode() != line:
        raise ValueError("not an object in canonical form")
    return value

# ---- the hashes ---------------------------------------------------------------------------

def turn_hash(turn, parent_hash):
    content = turn["content"]
    if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
        content = content[0]["text"]                # a single text block is hashed as its text
    call = {"tool_call_id": turn["tool_call_id"]} if "tool_call_id" in turn else {}
    return sha256({"content": content, "created_at": turn["created_at"],
                   "parent_turn_hash": parent_hash, "role": turn["role"], **call})

def operation_hash(operation, conversation_id, previous):
    purged = operation.get("purged", False)
    return sha256({"actor": operation["actor"], "at": operation["at"], "conversation_id": conversation_id,
                   "detail_digest": operation["detail_digest"] if purged else sha256(operation["detail"]),
                   "kind": operation["kind"], "previous": previous, "seq": operation["seq"]})

# ---- the file -----------------------------------------------------------------------------

class Bundle:
    def __init__(self):
        self.problems, self.ended, self.before = [], False, hashlib.sha256()
        self.conversations = self.turns = self.operations = self.commits = self.purged = 0
        self.observed, self.sources = {}, {}

    def check(self, what, key, stated, expected):
        if stated != expected:
            self.problems.append(f"{what}: {key} is {stated}, recomputed {expected}")

    def line(self, number, raw):
        try:
            if self.ended or not raw.endswith(b"\n"):
                raise ValueError("something follows the end line" if self.ended else "cut off here")
            record = parse(raw[:-1])
            if number == 1:
                self.check("line 1", "the header", record, {"format": "tine-bundle", "version": 1})
            elif record["record"] not in ("hidden", "branch", "bookmark", "split"):  # these have no hash
                getattr(self, "on_" + record["record"])(record, f"line {number}: {record['record']}")
        except KeyError as error:
            self.problems.append(f"line {number}: {error} is missing")
        except (ValueError, OverflowError, TypeError, AttributeError, RecursionError) as error:
            self.problems.append(f"line {number}: {error}")
        self.before.update(raw)

    def on_conversation(self, record, what):
        self.finish_conversation()
        self.conversations += 1
        self.conversation_id, self.hashes, self.previous, self.seq = record["conversation_id"], {}, None, 0
        self.parents = {}
        if "purged" not in record:
            root = {"config": record["config"], "system_prompt": record["system_prompt"]}
            self.check(f"{what} {self.conversation_id}", "root_hash", record["root_hash"], sha256(root))

    def on_turn(self, record, what):
        self.turns += 1
        what, parent = f"{what} {record['turn_id']}", record["parent_id"]
        parent_hash = None if parent is None else self.hashes.get(parent, "an unknown turn")
        self.hashes[record["turn_id"]] = record["turn_hash"]
        self.parents[record["turn_hash"]] = record["parent_turn_hash"]
        self.check(what, "parent_turn_hash", record["parent_turn_hash"], parent_hash)
        if "purged" in record:
            self.purged += 1
        else:
            self.check(what, "turn_hash", record["turn_hash"], turn_hash(record, record["parent_turn_hash"]))

    def on_operation(self, record, what):
        self.operations, self.seq = self.operations + 1, self.seq + 1
        what = f"{what} {record['seq']} of {self.conversation_id}"
        self.check(what, "seq", record["seq"], self.seq)
        self.check(what, "previous", record["previous"], self.previous)
        self.check(what, "hash", record["hash"], operation_hash(record, self.conversation_id, record["previous"]))
        self.previous = record["hash"]
        detail = record.get("detail")
        for change in detail.get("changes", []) if isinstance(detail, dict) else []:
            if change.get("record") == "observation":   # the log covers observations by digest
                self.observed[change["observation_id"]] = change["digest"]

    def on_entry(self, record, what):
        kind, key, value = record["kind"], record["key"], record["value"]
        what = f"{what} {kind} {key}"
        if kind == "observation":
            stated = self.observed.pop(f"obs_{key[:32]}_{key[32:]}", "in no operation")
            self.check(what, "digest", stated, value.get("purged") or sha256(value)[7:])
        elif kind == "commit":
            self.commit(what, key, value)
        elif kind == "prompt":
            self.check(what, "key", key, hashlib.sha256(value.encode()).hexdigest())
        elif kind == "source" and not value.get("purged"):
            self.sources["src_" + key] = (value["content_hash"], hashlib.sha256())

    def commit(self, what, key, commit):
        self.commits += 1
        if not commit.get("purged"):                # a purged one cannot be recomputed
            self.check(what, "commit_hash", "sha256:" + key, sha256(commit))
        self.check(what, "conversation_id", commit["conversation_id"], self.conversation_id)
        window, turns = commit["turn_window"], 0
        at = window and window["end_turn_hash"]
        while at is not None and at in self.parents:
            turns += 1
            at = None if at == window["start_turn_hash"] else self.parents[at]
        self.check(what, "turn_count", commit["turn_count"], turns)

    def on_piece(self, record, what):
        self.sources[record["source_id"]][1].update(base64.b64decode(record["bytes"], validate=True))

    def finish_conversation(self):
        for name in self.observed:
            self.problems.append(f"observation {name} of {self.conversation_id}: it is missing")
        for name, (stated, bytes) in self.sources.items():
            self.check(f"source {name}", "content_hash", stated, bytes.hexdigest())
        self.observed, self.sources = {}, {}

    def on_end(self, record, what):
        self.finish_conversation()
        self.ended = True
        for key in ("conversations", "turns", "operations"):
            self.check(what, key, record[key], getattr(self, key))
        self.check(what, "sha256", record["sha256"], self.before.hexdigest())

def main(path):
    bundle, number = Bundle(), 0
    with sys.stdin.buffer if path == "-" else open(path, "rb") as lines:
        for number, raw in enumerate(lines, 1):
            bundle.line(number, raw)
    if not bundle.ended:
        bundle.problems.append(f"line {number + 1}: the end line is missing: the file was cut off")
    print("\n".join(bundle.problems) or f"ok: {bundle.conversations} conversations, {bundle.turns} turns, "
          f"{bundle.operations} operations" + (f", {bundle.commits} commits" if bundle.commits else "")
          + (f" ({bundle.purged} turns purged)" if bundle.purged else ""))
    return 1 if bundle.problems else 0

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
