#!/usr/bin/env python3
"""Runs `tine` with a deliberate defect: each start first undoes the last stored change.

The kill tests use it as a control that they must report as losing data. TINE names the real program.
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
    listed = json.loads(tine("ls", "--json"))
    if listed["items"]:
        last = max(listed["items"], key=lambda item: item["changed_at"])
        tine("undo", "--conversation", last["conversation_id"])
os.execv(TINE, [TINE, *sys.argv[1:]])
