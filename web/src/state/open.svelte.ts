// The open conversation: its tree, the path on screen, the selection.
import { call, Problem, type Schemas } from "../api/client";
import { readOn, readOutline, type Branch, type Outline } from "../api/outline";
import { rows, type Rows, type Shown } from "../tree/rows";
import { NONE, Tree } from "../tree/tree";
import { Walk } from "../tree/walk";
import { Contents } from "./contents.svelte";
import { route } from "./route.svelte";
import { visits } from "./visits";

export type { Branch };

/** How many forks before the leaf are stored as visited. */
const FORKS_NOTED = 32;

class Open {
  id = $state("");
  info = $state.raw<Schemas["Conversation"] | null>(null);
  state = $state<"none" | "loading" | "ready" | "missing">("none");
  why = $state("");
  tree = $state.raw(new Tree());
  branches = $state.raw<Branch[]>([]);
  visited = $state.raw<ReadonlyMap<string, string>>(new Map());
  contents = $state.raw(new Contents(""));
  /** The end of the path on screen. */
  leaf = $state("");
  /** The selected turn. */
  focus = $state("");
  /** The branch with its tip at the leaf; empty if detached. */
  branch = $state("");
  /** The turn selected for comparison. */
  marked = $state("");
  folds = $state.raw<ReadonlyMap<string, boolean>>(new Map());
  filter = $state("");
  shown = $state<Shown>("all");
  hoisted = $state("");
  /** Incremented to scroll the focus into view. */
  reveal = $state(0);
  /** Incremented when the focus replaces another version and must keep its position. */
  steady = $state(0);

  walk = $derived(new Walk(this.tree));
  path = $derived(this.tree.path(this.tree.find(this.leaf)));
  onPath = $derived(new Set(this.path));
  rows: Rows = $derived(
    rows(this.walk, {
      onPath: this.onPath,
      folds: this.folds,
      filter: this.filter,
      shown: this.shown,
      hoist: this.tree.find(this.hoisted),
    }),
  );
  focused = $derived(this.tree.find(this.focus));
  private loads = 0;
  private outline: Outline = { tree: new Tree(), branches: [], seq: 0 };

  /** Opens a conversation, optionally at a turn. */
  async load(id: string, turn: string): Promise<void> {
    if (id === this.id && this.state === "ready") {
      await this.goTo(turn);
      return;
    }
    const load = ++this.loads;
    this.id = id;
    this.state = "loading";
    this.contents = new Contents(id);
    this.tree = new Tree();
    this.folds = new Map();
    this.filter = this.hoisted = this.marked = this.leaf = this.focus = this.branch = "";
    const at = { conversation_id: id };
    try {
      const [info, outline, visited] = await Promise.all([
        call("get", "/api/v1/conversations/{conversation_id}", { at }),
        readOutline(id),
        visits.read(id),
      ]);
      if (load !== this.loads) return;
      this.info = info;
      this.take(outline);
      this.visited = visited;
      this.state = "ready";
      await this.goTo(turn);
    } catch (error) {
      if (load !== this.loads) return;
      this.state = "missing";
      this.why = error instanceof Problem ? error.message : String(error);
    }
  }

  private take(outline: Outline): void {
    this.outline = outline;
    this.tree = outline.tree;
    this.branches = outline.branches;
  }

  close(): void {
    this.loads++;
    this.id = "";
    this.state = "none";
    this.info = null;
  }

  /** Shows a turn on its branch, or the last visited path. */
  async goTo(turn: string): Promise<void> {
    let at = this.tree.find(turn);
    if (turn && at === NONE) at = this.tree.find(await this.resolve(turn));
    if (at === NONE) {
      const main = this.branches.find((branch) => branch.name === "main")?.turn_id;
      const remembered = this.tree.find(this.visited.get(""));
      const leaf = remembered !== NONE ? remembered : main ? this.tree.find(main) : this.walk.leaf(NONE, this.visited);
      this.show(leaf, leaf);
    } else if (this.onPath.has(at)) this.show(this.tree.find(this.leaf), at);
    else this.show(this.walk.leaf(at, this.visited), at);
    this.reveal++;
  }

  /** Resolves a hash, a branch, or a turn that was split. */
  private async resolve(name: string): Promise<string> {
    const found = await call("get", "/api/v1/turns/{turn}", {
      at: { turn: name },
      query: { conversation_id: this.id, rings: false },
    });
    return found.turn_id;
  }

  private show(leaf: number, focus: number): void {
    const { tree } = this;
    this.leaf = tree.ids[leaf] ?? "";
    this.focus = tree.ids[focus] ?? "";
    const here = tree.branches.get(leaf) ?? [];
    if (!here.includes(this.branch)) this.branch = here.includes("main") ? "main" : (here[0] ?? "");
    if (leaf === NONE && this.branches.some((branch) => branch.name === "main" && !branch.turn_id)) this.branch = "main";
    this.remember();
  }

  /** Ends the path here while a reply is streaming. */
  endAt(turn: number): void {
    this.leaf = this.focus = this.tree.ids[turn] ?? "";
    this.reveal++;
  }

  /** Selects a turn and shows its path. */
  select(turn: string, reveal = true): void {
    const at = this.tree.find(turn);
    if (at === NONE) return;
    if (this.onPath.has(at)) this.focus = turn;
    else this.show(this.walk.leaf(at, this.visited), at);
    if (reveal) this.reveal++;
    route.go({ conversation: this.id, turn }, true);
  }

  /** Switches to another version and keeps the scroll position. */
  switchTo(turn: string): void {
    const at = this.tree.find(turn);
    if (at === NONE) return;
    this.show(this.walk.leaf(at, this.visited), at);
    this.steady++;
    route.go({ conversation: this.id, turn }, true);
  }

  /** Shows a branch up to its tip. */
  follow(name: string): void {
    const branch = this.branches.find((candidate) => candidate.name === name);
    if (!branch) return;
    const tip = this.tree.find(branch.turn_id);
    this.branch = name;
    this.show(tip, tip);
    this.branch = name;
    this.reveal++;
    route.go({ conversation: this.id, ...(branch.turn_id ? { turn: branch.turn_id } : {}) }, true);
  }

  /** The branch that contains this turn, preferring the one on screen. */
  branchOf(turn: number): string {
    if (this.branch && this.onPath.has(turn)) return this.branch;
    for (const { name, turn_id } of this.branches) {
      const at = this.tree.find(turn_id);
      if (at !== NONE && this.tree.isBelow(at, turn)) return name;
    }
    return "";
  }

  private remember(): void {
    if (!this.leaf || this.visited.get("") === this.leaf) return;
    const forks = this.path.filter((at) => this.tree.hasSiblings(at)).slice(-FORKS_NOTED);
    this.visited = visits.noted(this.id, this.visited, forks.map((at) => this.tree.ids[at]!), this.leaf);
  }

  fold(turn: string, folded: boolean): void {
    this.folds = new Map(this.folds).set(turn, folded);
  }

  /** Reloads the tree after a change and keeps the selection if it still exists. */
  async refresh(): Promise<void> {
    const { id } = this;
    const [outline, info] = await Promise.all([
      readOn(id, this.outline),
      call("get", "/api/v1/conversations/{conversation_id}", { at: { conversation_id: id } }),
    ]);
    if (id !== this.id || outline.seq < this.outline.seq) return;
    const before = this.tree;
    const [leaf, focus] = [before.find(this.leaf), before.find(this.focus)];
    const wasAtTip = Boolean(this.branch) && this.branches.some(({ name, turn_id }) => name === this.branch && (turn_id ?? "") === this.leaf);
    this.take(outline);
    this.info = info;
    const { tree, branches } = outline;
    const tip = tree.find(branches.find(({ name }) => name === this.branch)?.turn_id);
    // At the tip of a branch, follow it.
    const kept = wasAtTip && tip !== NONE ? tip : this.nearest(before, leaf);
    const chosen = this.nearest(before, focus);
    this.show(kept, chosen === NONE || !tree.isBelow(kept, chosen) ? kept : chosen);
  }

  /** The turn in the new tree, or its closest remaining ancestor. */
  private nearest(before: Tree, at: number): number {
    for (; at !== NONE; at = before.parent[at]!) {
      const now = this.tree.find(before.ids[at]);
      if (now !== NONE) return now;
    }
    return this.walk.leaf(NONE, this.visited);
  }
}

export const open = new Open();
