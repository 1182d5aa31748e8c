"""LangGraph's checkpointers: messages in the state of a graph, with a checkpoint per step."""
import importlib.metadata
import sqlite3

import postgres
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from peer import Peer, resident

KINDS = {"user": HumanMessage, "assistant": AIMessage}
WHOLE = "loads the whole state"


def speak(message, **more):
    role, text = message
    return KINDS[role](text, **more)


def said(messages):
    return [("user" if each.type == "human" else "assistant", each.content) for each in messages]


def at(conversation):
    return {"configurable": {"thread_id": conversation}}


class Checkpoints(Peer):
    notes = {
        "append": "`update_state` with one message; each client starts its own conversation",
        "fork": "`update_state` of an earlier checkpoint, which copies it",
        "edit": "replaces the message in the newest state; later messages stay",
        "path": WHOLE,
        "last": WHOLE,
        "around": WHOLE,
        "open": WHOLE,
        "search": "loads and scans the state of every conversation, not ranked",
    }
    versions = ("langgraph", "langgraph-checkpoint")

    def version(self):
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in self.versions)

    def graph_over(self, saver):
        graph = StateGraph(MessagesState)
        graph.add_node("chat", lambda state: {})
        graph.add_edge(START, "chat")
        graph.add_edge("chat", END)
        self.saver = saver
        self.graph = graph.compile(checkpointer=saver)

    def update(self, config, messages):
        return self.graph.update_state(config, {"messages": messages}, as_node="chat")

    def append(self, conversation, message):
        self.update(at(conversation), [speak(message)])

    def fill(self, conversation, messages):
        """Appends all messages in one step."""
        self.update(at(conversation), [speak(message) for message in messages])

    def find(self, conversation, back):
        """Returns the message and a checkpoint a few steps before the newest."""
        state = self.graph.get_state(at(conversation))
        message = state.values["messages"][-1 - back]
        for _ in range(min(back, 2)):
            if state.parent_config:
                state = self.graph.get_state(state.parent_config)
        return message.id, state.config

    def fork(self, conversation, turn, name):
        self.graph.update_state(turn[1], None, as_node="__copy__")

    def edit(self, conversation, turn, text, name):
        self.update(at(conversation), [HumanMessage(text, id=turn[0])])

    def state(self, conversation):
        return self.graph.get_state(at(conversation)).values["messages"]

    def path(self, conversation):
        return said(self.state(conversation))

    def last(self, conversation, turns):
        return said(self.state(conversation)[-turns:])

    def around(self, conversation, turn, turns):
        messages = self.state(conversation)
        place = next(n for n, message in enumerate(messages) if message.id == turn[0])
        start = place - turns // 2
        return said(messages[start : start + turns])

    def search(self, word):
        found = []
        for conversation in self.conversations():
            found += [each for each in said(self.state(conversation)) if word in each[1]]
            if len(found) >= 20:
                return found[:20]
        return found


class SqliteCheckpoints(Checkpoints):
    name = "langgraph-sqlite"
    label = "LangGraph, SqliteSaver"
    needs = ("langgraph.checkpoint.sqlite",)
    versions = (*Checkpoints.versions, "langgraph-checkpoint-sqlite")

    def serve(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.connect()
        self.saver.setup()
        self.close()

    def connect(self):
        from langgraph.checkpoint.sqlite import SqliteSaver

        file = self.folder / "checkpoints.db"
        self.database = sqlite3.connect(file, timeout=60, check_same_thread=False)
        self.graph_over(SqliteSaver(self.database))

    def close(self):
        self.database.close()

    def conversations(self):
        return [row[0] for row in self.database.execute("SELECT DISTINCT thread_id FROM checkpoints")]

    def rest(self):
        self.database.execute("VACUUM")


class PostgresCheckpoints(Checkpoints):
    name = "langgraph-postgres"
    label = "LangGraph, PostgresSaver"
    needs = ("langgraph.checkpoint.postgres", "psycopg", "postgres")
    versions = (*Checkpoints.versions, "langgraph-checkpoint-postgres")

    def version(self):
        return f"{super().version()}, {postgres.version(self.place['postgres'])}"

    def serve(self):
        self.address = postgres.database(self.place)
        self.connect()
        self.saver.setup()
        self.close()

    def connect(self):
        from langgraph.checkpoint.postgres import PostgresSaver

        self.context = PostgresSaver.from_conn_string(self.address)
        self.graph_over(self.context.__enter__())

    def close(self):
        self.context.__exit__(None, None, None)

    def conversations(self):
        rows = self.saver.conn.execute("SELECT DISTINCT thread_id FROM checkpoints")
        return [row["thread_id"] for row in rows]

    def rest(self):
        self.saver.conn.execute("VACUUM FULL")

    def disk(self):
        return postgres.size(self.address)

    def memory(self):
        """Returns the memory of this process and of the server's session process."""
        return super().memory() + resident(self.saver.conn.info.backend_pid)


PEERS = (SqliteCheckpoints, PostgresCheckpoints)
