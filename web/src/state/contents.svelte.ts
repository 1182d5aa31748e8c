// Contents of turns, fetched in windows of a path as they scroll into view. A turn never changes;
// its title and tags may, so it can be forgotten.
import { SvelteMap } from "svelte/reactivity";
import { address, inProject, send, type Schemas } from "../api/client";
import { parseExactly } from "../text/canonical";

export interface Block {
  type: string;
  [key: string]: unknown;
}

export type Turn = Omit<Schemas["Turn"], "content" | "metadata"> & {
  content: Block[] | null;
  metadata: { title?: string; auto_title?: string; tags?: string[]; source_info?: Record<string, unknown>; custom_data?: unknown };
};

/** Turns per request. */
const WINDOW = 40;
/** Turns rendered per frame. */
const IN_A_FRAME = 6;
/** Turns kept in memory. */
const KEPT = 3000;

export class Contents {
  readonly turns = new SvelteMap<string, Turn>();
  private readonly asked = new Set<string>();

  constructor(private readonly conversation: string) {}

  /** Loads a range of turns of a path. */
  async want(path: readonly string[], from: number, to: number): Promise<void> {
    const missing = (at: number): boolean => !this.turns.has(path[at]!) && !this.asked.has(path[at]!);
    const windows: Promise<void>[] = [];
    for (let end = Math.min(to, path.length) - 1; end >= from; ) {
      if (!missing(end)) {
        end--;
        continue;
      }
      let begin = end;
      while (begin > from && end - begin + 1 < WINDOW && missing(begin - 1)) begin--;
      windows.push(this.fetch(path.slice(begin, end + 1)));
      end = begin - 1;
    }
    await Promise.all(windows);
  }

  async one(id: string): Promise<Turn | undefined> {
    if (!this.turns.has(id)) await this.fetch([id]);
    return this.turns.get(id);
  }

  private async fetch(ids: string[]): Promise<void> {
    for (const id of ids) this.asked.add(id);
    try {
      const query = { conversation_id: this.conversation, before: ids.length - 1, after: 0, ...inProject() };
      const response = await send("get", address("/api/v1/turns/{turn}/path", { turn: ids.at(-1) }, query));
      const window = parseExactly(await response.text()) as { turns: Turn[] };
      await this.spread(window.turns);
    } finally {
      for (const id of ids) this.asked.delete(id);
    }
  }

  /** Adds a few per frame, because each is rendered. */
  private async spread(turns: Turn[]): Promise<void> {
    for (let at = 0; at < turns.length; at += IN_A_FRAME) {
      if (at > 0) await new Promise((done) => requestAnimationFrame(done));
      for (const turn of turns.slice(at, at + IN_A_FRAME)) this.put(turn);
    }
  }

  private put(turn: Turn): void {
    if (this.turns.size >= KEPT) this.turns.delete(this.turns.keys().next().value!);
    this.turns.set(turn.turn_id, turn);
  }

  forget(id: string): void {
    this.turns.delete(id);
  }
}
