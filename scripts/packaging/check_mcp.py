"""Starts an MCP server as a host would and checks that it answers: `check_mcp.py CONFIGURATION FOLDER`.

CONFIGURATION is the manifest of an MCP bundle or a file with `mcpServers`; FOLDER is where the bundle
or plugin is installed. With `--skill FILE`, every tool and field that the skill names must exist.
"""

import json
import pathlib
import re
import subprocess
import sys

configuration, folder = sys.argv[1:3]
document = json.loads(pathlib.Path(configuration).read_text())
server = document["server"]["mcp_config"] if "server" in document else document["mcpServers"]["tine"]
command = [part.replace("${__dirname}", folder) for part in (server["command"], *server["args"])]


def request(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"
asked = request(1, "initialize", hello) + ready + request(2, "tools/list", {})
done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=60)
answers = {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}
assert 1 in answers and 2 in answers, f"{command}: {done.stdout}{done.stderr}"
assert answers[1]["result"]["serverInfo"]["name"] == "tine", answers[1]
tools = {tool["name"]: tool["inputSchema"].get("properties", {}) for tool in answers[2]["result"]["tools"]}

if "--skill" in sys.argv:
    path = pathlib.Path(sys.argv[sys.argv.index("--skill") + 1])
    _, head, text = path.read_text().split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == path.parent.name, "the skill must have the name of its folder"
    assert 0 < len(fields["description"]) <= 1024, "a description has at most 1,024 characters"
    known = set(tools).union(*tools.values())
    unknown = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text)) - known
    assert not unknown, f"the skill names tools or fields that do not exist: {sorted(unknown)}"
print(f"{command[0]}: {len(tools)} tools")
