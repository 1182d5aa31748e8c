// Streaming replies of models. The server records what arrived, even if the reply is interrupted.
import { address, call, headers, inProject, problemOf, type Schemas } from "../api/client";
import { frames } from "../api/live";
import { NONE } from "../tree/tree";
import { freeName } from "./names";
import { open } from "./open.svelte";
import { ui } from "./ui.svelte";

interface Coming {
  conversation: string;
  model: string;
  text: string;
  thinking: string;
}

class Answering {
  models = $state.raw<Schemas["Model"][]>([]);
  /** The model that replies; empty for no reply. */
  model = $state("");
  coming = $state.raw<Coming | null>(null);
  private stopping: AbortController | undefined;

  async load(): Promise<void> {
    const found = await ui.trying(() => call("get", "/api/v1/models"));
    this.models = found?.items ?? [];
    this.model = (this.models.find((model) => model.default) ?? this.models[0])?.name ?? "";
  }

  /** Appends a message, if one is given, and requests a reply. */
  async reply(content?: string): Promise<boolean> {
    const branch = open.branch || (await this.branchHere());
    if (!branch) return false;
    const at = { conversation_id: open.id, branch };
    return this.ask(address("/api/v1/conversations/{conversation_id}/branches/{branch}/reply", at, inProject()), content ? { content } : {});
  }

  /** Requests another version of a reply. */
  async regenerate(turn: string): Promise<boolean> {
    const at = open.tree.find(turn);
    const branch = open.branchOf(at);
    open.endAt(open.tree.parent[at]!);
    return this.ask(address("/api/v1/turns/{turn}/regenerate", { turn }, { conversation_id: open.id, ...inProject() }), branch ? { branch } : {});
  }

  stop(): void {
    this.stopping?.abort();
  }

  /** Creates a branch for a detached path before something is appended to it. */
  private async branchHere(): Promise<string> {
    if (open.tree.find(open.leaf) === NONE) return "main";
    const made = await ui.trying(() =>
      call("post", "/api/v1/turns/{turn}/fork", { at: { turn: open.leaf }, query: { conversation_id: open.id }, body: { name: freeName() } }),
    );
    return made?.name ?? "";
  }

  private async ask(url: string, body: object): Promise<boolean> {
    if (this.coming) {
      ui.say("A reply is still streaming. Stop it first.", undefined, "bad");
      return false;
    }
    const conversation = open.id;
    this.stopping = new AbortController();
    this.coming = { conversation, model: this.model, text: "", thinking: "" };
    const asked = await ui.trying(async () => {
      const response = await fetch(url, {
        method: "POST",
        headers: headers({ "content-type": "application/json", accept: "text/event-stream" }),
        body: JSON.stringify({ ...body, ...(this.model ? { model: this.model } : {}) }),
        signal: this.stopping!.signal,
      });
      if (!response.ok || !response.body) throw await problemOf(response);
      for await (const { event, data } of frames(response.body)) await this.see(event, JSON.parse(data));
      return true;
    });
    const stopped = this.stopping.signal.aborted;
    this.coming = null;
    if (open.id === conversation) await ui.trying(() => this.settle(stopped));
    return asked ?? stopped;
  }

  private async see(event: string, data: Seen): Promise<void> {
    const { coming } = this;
    if (!coming) return;
    if (event === "turn" && data.branch && open.id === coming.conversation) {
      await open.refresh();
      open.follow(data.branch.name);
    }
    if (event === "begin") this.coming = { ...coming, model: data.model ?? coming.model };
    if (event === "delta") this.coming = { ...coming, text: coming.text + (data.text ?? "") };
    if (event === "thinking") this.coming = { ...coming, thinking: coming.thinking + (data.text ?? "") };
    if (event === "error") ui.say(data.problem?.detail ?? "The model did not reply.", undefined, "bad");
    if (event === "done" && data.branch && open.id === coming.conversation) {
      await open.refresh();
      open.follow(data.branch.name);
      if (data.forked) ui.say(`Someone else wrote at the same time. The reply is on branch ${data.branch.name}.`);
    }
  }

  /** The server records an interrupted reply a moment later. */
  private async settle(stopped: boolean): Promise<void> {
    await open.refresh();
    if (stopped) ui.say("Stopped. The partial reply is kept.");
  }
}

interface Seen {
  text?: string;
  model?: string;
  branch?: { name: string } | null;
  forked?: boolean;
  problem?: { detail?: string };
}

export const answering = new Answering();
