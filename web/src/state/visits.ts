// The last visited leaf below each version of a fork, and "" for the conversation itself. Stored on
// the server, so it is the same in every browser.
import { call } from "../api/client";

/** Delay that groups changes into one request. */
const REST_MS = 250;
/** Entries kept per conversation; the oldest are dropped. */
const KEPT = 800;

type Leaves = Record<string, string | null>;

class Visits {
  private conversation = "";
  private changed: Leaves = {};
  private timer: ReturnType<typeof setTimeout> | undefined;

  async read(conversation: string): Promise<ReadonlyMap<string, string>> {
    const { leaves } = await call("get", "/api/v1/conversations/{conversation_id}/visited", { at: { conversation_id: conversation } });
    return new Map(Object.entries(leaves));
  }

  /** Adds entries and sends them after a delay. */
  noted(conversation: string, known: ReadonlyMap<string, string>, places: string[], leaf: string): ReadonlyMap<string, string> {
    const kept = new Map(known);
    for (const place of ["", ...places]) {
      kept.delete(place);
      kept.set(place, leaf);
      this.later(conversation, place, leaf);
    }
    for (const place of kept.keys()) {
      if (kept.size <= KEPT) break;
      kept.delete(place);
      this.later(conversation, place, null);
    }
    return kept;
  }

  private later(conversation: string, place: string, leaf: string | null): void {
    if (conversation !== this.conversation) void this.send();
    this.conversation = conversation;
    this.changed[place] = leaf;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.send(), REST_MS);
  }

  /** Failures are ignored: only a reading position is lost. */
  private async send(): Promise<void> {
    const [conversation_id, leaves] = [this.conversation, this.changed];
    this.changed = {};
    if (Object.keys(leaves).length === 0) return;
    await call("put", "/api/v1/conversations/{conversation_id}/visited", { at: { conversation_id }, body: { leaves } }).catch(() => {});
  }
}

export const visits = new Visits();
