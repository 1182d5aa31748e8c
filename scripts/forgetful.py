#!/usr/bin/env python3
"""A program with a defect: whenever it starts, it has lost the last change that it had stored.

It stands in for `tine` where a `kills.py` is to be shown a loss; TINE names the real one.
"""

import json
import os
import subprocess
import sys

TINE = os.environ["TINE"]


def tine(*arguments):
    done = subprocess.run([TINE, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


if os.path.exists(os.environ["TINE_STORE"]):
    there = json.loads(tine("ls", "--json"))
    if there["items"]:
        last = max(there["items"], key=lambda it: it["changed_at"])
        tine("undo", "--conversation", last["conversation_id"])
os.execv(TINE, [TINE, *sys.argv[1:]])
