"""Lets the headless client acpx create, resume and list a session: headless.py ACPX RECORD AGENT...

RECORD is the file to which `tap.py`, the first program of AGENT, writes the traffic.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time

ACPX, RECORD, *AGENT = sys.argv[1:]
TRIES = 20


def acpx(*arguments):
    """Runs an acpx command with a temporary home folder and returns its output."""
    command = ["node", ACPX, "--agent", shlex.join(AGENT), "--ttl", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 0, f"{arguments}: {done.stdout} {done.stderr}"
    return done.stdout


def asked(method):
    with open(RECORD) as file:
        return sum(f'"method":"{method}"' in line.replace(" ", "") for line in file)


with tempfile.TemporaryDirectory() as home:
    ENVIRONMENT = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home}
    session = acpx("sessions", "new").split()[-1]
    assert "Where to in March" in acpx("--format", "quiet", "prompt", "Where to in March")
    way = "session/resume" if "WITHOUT" not in os.environ else "session/load"
    for _ in range(TRIES):
        # acpx keeps an agent alive for a second and resumes the session only after that.
        time.sleep(1.5)
        assert "And in April" in acpx("--format", "quiet", "prompt", "And in April")
        if asked(way):
            break
    listed = acpx("sessions", "list")
    assert session in listed and "Where to in March" in listed, listed
    for method in ("session/new", "session/prompt", "session/list", way):
        assert asked(method), f"the client never sent {method}"
