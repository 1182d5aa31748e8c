// The conversation that is open: its tree, the path that is read, what is chosen on it.
import { call, Problem, type Schemas } from "../api/client";
import { readOn, readOutline, type Branch, type Outline } from "../api/outline";
import { rows, type Rows, type Shown } from "../tree/rows";
import { NONE, Tree } from "../tree/tree";
import { Walk } from "../tree/walk";
import { Contents } from "./contents.svelte";
import { route } from "./route.svelte";
import { visits } from "./visits";

export type { Branch };

/** Forks, the closest before the leaf, at which it is noted that this way was read. */
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
  /** The end of the path that is read. */
  leaf = $state("");
  /** The turn that keys act on. */
  focus = $state("");
  /** The branch that goes on at the leaf; none where a line was left behind. */
  branch = $state("");
  /** The turn that others are compared with. */
  marked = $state("");
  folds = $state.raw<ReadonlyMap<string, boolean>>(new Map());
  filter = $state("");
  shown = $state<Shown>("all");
  hoisted = $state("");
  /** Counts up when the transcript shall bring the focus into view. */
  reveal = $state(0);
  /** Counts up when the focus took the place of another version and shall stay where that was. */
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

  /** Opens a conversation, at a turn if one is named. */
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

  /** Shows a turn on its own branch; without one, where the reader was last. */
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

  /** A turn by another name: a hash, a branch, or what it was before it was split. */
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

  /** Shows a path only up to here, while something is being said behind it. */
  endAt(turn: number): void {
    this.leaf = this.focus = this.tree.ids[turn] ?? "";
    this.reveal++;
  }

  /** Chooses a turn; its path is shown if another is. */
  select(turn: string, reveal = true): void {
    const at = this.tree.find(turn);
    if (at === NONE) return;
    if (this.onPath.has(at)) this.focus = turn;
    else this.show(this.walk.leaf(at, this.visited), at);
    if (reveal) this.reveal++;
    route.go({ conversation: this.id, turn }, true);
  }

  /** Reads on along another version; the reader stays at the fork. */
  switchTo(turn: string): void {
    const at = this.tree.find(turn);
    if (at === NONE) return;
    this.show(this.walk.leaf(at, this.visited), at);
    this.steady++;
    route.go({ conversation: this.id, turn }, true);
  }

  /** Follows a branch to its tip. */
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

  /** The branch whose line this turn is on, the one that is read first of all. */
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

  /** Reads the tree anew after a change, and stays where the reader is if that is still there. */
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
    // Whoever reads at a branch's tip goes on with it.
    const kept = wasAtTip && tip !== NONE ? tip : this.nearest(before, leaf);
    const chosen = this.nearest(before, focus);
    this.show(kept, chosen === NONE || !tree.isBelow(kept, chosen) ? kept : chosen);
  }

  /** The turn itself in the new tree, or the closest before it that is still there. */
  private nearest(before: Tree, at: number): number {
    for (; at !== NONE; at = before.parent[at]!) {
      const now = this.tree.find(before.ids[at]);
      if (now !== NONE) return now;
    }
    return this.walk.leaf(NONE, this.visited);
  }
}

export const open = new Open();
