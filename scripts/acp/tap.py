"""Stands between a client and an agent and writes down every line: tap.py FILE AGENT..."""

import subprocess
import sys
import threading

FILE, *COMMAND = sys.argv[1:]


def main():
    agent = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writing = threading.Lock()
    with open(FILE, "ab", buffering=0) as record:

        def carry(lines, out, who):
            for line in lines:
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
