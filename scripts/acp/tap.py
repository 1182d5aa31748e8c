"""Forwards the traffic between a client and an agent and logs every line: tap.py FILE AGENT...

WITHOUT names a session capability to hide from the client, so that it uses an alternative.
"""

import json
import os
import subprocess
import sys
import threading

FILE, *COMMAND = sys.argv[1:]
WITHOUT = os.environ.get("WITHOUT")


def without(line):
    message = json.loads(line)
    capabilities = (message.get("result") or {}).get("agentCapabilities")
    if capabilities is None:
        return line
    capabilities["sessionCapabilities"].pop(WITHOUT, None)
    return json.dumps(message).encode() + b"\n"


def main():
    agent = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writing = threading.Lock()
    with open(FILE, "ab", buffering=0) as record:

        def carry(lines, out, who):
            for line in lines:
                if WITHOUT and who == b"agent ":
                    line = without(line)
                with writing:
                    record.write(who + line)
                try:
                    out.write(line)
                    out.flush()
                except OSError:
                    return
            out.close()

        there = (sys.stdin.buffer, agent.stdin, b"client ")
        threading.Thread(target=carry, args=there, daemon=True).start()
        carry(agent.stdout, sys.stdout.buffer, b"agent ")
        sys.exit(agent.wait())


main()
