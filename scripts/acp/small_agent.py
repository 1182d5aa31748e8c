"""A small ACP agent that keeps sessions in memory and echoes prompts: small_agent.py [DEFECT]

It tests the conformance suite itself: without a defect every check must pass, and with one the
corresponding check must fail.
"""

import json
import sys
import threading
import time
import uuid

DEFECTS = {
    "whole": "forks everything, whatever the fork point",
    "ignores-type": "treats a malformed fork point as missing",
    "exclusive": "cuts before the fork point",
    "whole-turn": "rounds a fork point up to the end of its turn",
    "replies": "replies when a fork ends with a question",
    "shared": "shares one history between the fork and its parent",
    "moves-parent": "truncates the parent too",
    "any-session": "accepts a message of any session",
    "unknown-whole": "forks everything when the fork point is unknown",
    "plain-error": "reports an error without data.messageId",
    "new-ids": "gives the messages of a fork new ids",
    "thought-anchor": "forks at thoughts",
    "no-ids": "sends chunks without ids",
    "silent": "does not advertise the capability",
    "needs-load": "refuses prompts in a fork until it is loaded",
    "no-meta": "ignores fork points under _meta",
}


class Refusal(Exception):
    def __init__(self, code, message, **data):
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class Agent:
    def __init__(self, defect):
        self.defect = defect
        self.sessions = {}
        self.unloaded = set()
        self.writing = threading.Lock()

    def write(self, message):
        with self.writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def show(self, session, message, text=None):
        content = {"type": "text", "text": message["text"] if text is None else text}
        update = {"sessionUpdate": message["kind"], "content": content}
        if self.defect != "no-ids":
            update["messageId"] = message["id"]
        self.write({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def history(self, params):
        session = params["sessionId"]
        if session not in self.sessions:
            raise Refusal(-32002, "no such session", sessionId=session)
        return self.sessions[session]

    def initialize(self, _):
        marked = {"atMessageId": True, "_meta": {"atMessageId": True}}
        fork = {} if self.defect == "silent" else marked
        can = {"loadSession": True, "sessionCapabilities": {"fork": fork}}
        return {"protocolVersion": 1, "agentCapabilities": can, "authMethods": []}

    def session_new(self, _):
        session = str(uuid.uuid4())
        self.sessions[session] = []
        return {"sessionId": session}

    def session_load(self, params):
        for message in self.history(params):
            self.show(params["sessionId"], message)
        self.unloaded.discard(params["sessionId"])
        return {}

    def say(self, session, history, kind, text, slowly=False):
        message = {"id": str(uuid.uuid4()), "kind": kind, "text": text}
        if slowly:
            for word in text.split(" "):
                time.sleep(0.005)
                self.show(session, message, word + " ")
            message["text"] = text + " "
        else:
            self.show(session, message)
        history.append(message)

    def answer(self, session, history):
        self.say(session, history, "agent_thought_chunk", "hm")
        self.say(session, history, "agent_message_chunk", history[-2]["text"], slowly=True)

    def session_prompt(self, params):
        session, history = params["sessionId"], self.history(params)
        if session in self.unloaded:
            raise Refusal(-32600, "load the session first")
        text = "".join(block.get("text", "") for block in params["prompt"])
        self.say(session, history, "user_message_chunk", text)
        self.answer(session, history)
        return {"stopReason": "end_turn"}

    def anchors(self, params):
        meta = params.get("_meta") or {}
        air = ((meta.get("jetbrains") or {}).get("air") or {}).get("fork") or {}
        given = [params.get("messageId")]
        if self.defect != "no-meta":
            given += [meta.get("messageId"), air.get("messageId")]
        given = [it for it in given if it is not None]
        if self.defect == "ignores-type":
            given = [it for it in given if isinstance(it, str)]
        if any(it != given[0] for it in given):
            raise Refusal(-32602, "conflicting fork points", messageId=given[0])
        return given[:1]

    def session_fork(self, params):
        history, anchors = self.history(params), self.anchors(params)
        if self.defect == "any-session" and anchors:
            holding = [it for it in self.sessions.values() if any(m["id"] == anchors[0] for m in it)]
            history = holding[0] if holding else history
        end = len(history)
        if anchors and self.defect != "whole":
            found = [i for i, it in enumerate(history) if it["id"] == anchors[0]]
            thought = found and history[found[0]]["kind"] == "agent_thought_chunk"
            if (not found and self.defect != "unknown-whole") or (
                thought and self.defect != "thought-anchor"
            ):
                data = {} if self.defect == "plain-error" else {"messageId": anchors[0]}
                raise Refusal(-32602, "no such message", **data)
            end = found[0] + 1 if found else len(history)
            if self.defect == "exclusive":
                end -= 1
            if self.defect == "whole-turn":
                while end < len(history) and history[end]["kind"] != "user_message_chunk":
                    end += 1
        session = str(uuid.uuid4())
        self.sessions[session] = history if self.defect == "shared" else history[:end]
        if self.defect == "moves-parent":
            del history[end:]
        if self.defect == "new-ids":
            self.sessions[session] = [{**it, "id": str(uuid.uuid4())} for it in history[:end]]
        if self.defect == "needs-load":
            self.unloaded.add(session)
        if self.defect == "replies" and end and history[end - 1]["kind"] == "user_message_chunk":
            self.answer(session, self.sessions[session])
        return {"sessionId": session}

    def work(self, request):
        method = getattr(self, request["method"].replace("/", "_"), None)
        try:
            if method is None:
                raise Refusal(-32601, "no such method")
            self.write({"id": request["id"], "result": method(request["params"])})
        except Refusal as refusal:
            self.write({"id": request["id"], "error": refusal.error})


def main():
    defect = sys.argv[1] if len(sys.argv) > 1 else None
    if defect is not None and defect not in DEFECTS:
        sys.exit(f"unknown defect `{defect}`; known defects: {' '.join(DEFECTS)}")
    agent = Agent(defect)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            threading.Thread(target=agent.work, args=(request,), daemon=True).start()


if __name__ == "__main__":
    main()
