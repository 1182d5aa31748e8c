"""Runs the conformance suite against an agent without defects, then with each known defect."""

import json
import os
import subprocess
import sys

from small_agent import DEFECTS

HERE = os.path.dirname(os.path.abspath(__file__))

# The check that must detect each defect. Other checks may fail too.
FOUND_BY = {
    "whole": "no silent full fork",
    "ignores-type": "a malformed fork point is not taken for a missing one",
    "exclusive": "inclusive cut at an agent's message",
    "whole-turn": "a user's message as fork point, and no reply",
    "replies": "a user's message as fork point, and no reply",
    "shared": "the parent is unchanged and continues",
    "moves-parent": "the parent is unchanged and continues",
    "any-session": "a message of another session is refused",
    "unknown-whole": "an unknown message is refused",
    "plain-error": "an unknown message is -32602 with data.messageId",
    "new-ids": "a fork of a fork by an inherited id",
    "thought-anchor": "a thought as fork point is refused with -32602",
    "no-ids": "chunks carry message ids",
    "silent": "capability advertised",
    "needs-load": "a fork can be prompted at once",
    "no-meta": "a fork point under _meta, for clients that drop unknown fields",
}


def suite(*defect):
    agent = [sys.executable, "-B", os.path.join(HERE, "small_agent.py"), *defect]
    command = [sys.executable, "-B", os.path.join(HERE, "conformance.py")]
    command += ["--json", "--quiet", "0.3"]
    return subprocess.Popen([*command, *agent], stdout=subprocess.PIPE, text=True)


def failed(running):
    results = json.loads(running.communicate()[0])
    return running.returncode, [it["check"] for it in results if it["result"] != "ok"]


def main():
    assert FOUND_BY.keys() == DEFECTS.keys(), "every defect must have a check, and every check a defect"
    code, checks = failed(suite())
    assert (code, checks) == (0, []), f"an agent without defects fails {checks}"
    pending = list(FOUND_BY)
    while pending:
        batch, pending = pending[:4], pending[4:]
        for defect, running in [(defect, suite(defect)) for defect in batch]:
            code, checks = failed(running)
            assert code != 0, f"not detected: an agent that {DEFECTS[defect]}"
            wanted = FOUND_BY[defect]
            assert wanted in checks, f"{defect} was detected by {checks}, expected `{wanted}`"


if __name__ == "__main__":
    main()
