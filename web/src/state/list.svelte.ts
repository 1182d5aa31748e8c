// The conversations of a project, and search results across all of them.
import { call, type Schemas } from "../api/client";
import { ui } from "./ui.svelte";

export type Conversation = Schemas["Conversation"];
export type Hit = Schemas["SearchHit"];

const PAGE = 200;
/** Delay after the last keystroke before a search is sent. */
const REST_MS = 120;

export interface Entry {
  conversation: Conversation;
  /** Nesting depth below the conversation it was derived from or started by. */
  level: number;
}

export function nameOf(conversation: { title?: string | null; label?: string | null; conversation_id: string }): string {
  return conversation.title || conversation.label || conversation.conversation_id;
}

export function tagsOf(conversation: Conversation): string[] {
  const { tags } = (conversation.metadata ?? {}) as { tags?: unknown };
  return Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === "string") : [];
}

class List {
  all = $state.raw<Conversation[]>([]);
  projects = $state.raw<string[]>(["default"]);
  ready = $state(false);
  more = $state<string | null>(null);
  query = $state("");
  tag = $state("");
  /** Tags found on conversations. */
  tags = $state.raw<string[]>([]);
  archived = $state(false);
  hits = $state.raw<Hit[]>([]);
  searching = $state(false);
  private asked = 0;
  private loads = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  entries: Entry[] = $derived(nested(this.all));

  private asking(): { order: "activity"; limit: number; archived: boolean; q?: string; tag?: string } {
    const q = this.query.trim();
    return { order: "activity", limit: PAGE, archived: this.archived, ...(q ? { q } : {}), ...(this.tag ? { tag: this.tag } : {}) };
  }

  async load(): Promise<void> {
    const asked = ++this.loads;
    const page = await ui.trying(() => call("get", "/api/v1/conversations", { query: this.asking() }));
    if (!page || asked !== this.loads) return;
    this.all = page.items;
    this.more = page.next ?? null;
    this.ready = true;
    this.tags = [...new Set([...this.tags, ...page.items.flatMap(tagsOf)])].sort();
    const projects = await ui.trying(() => call("get", "/api/v1/projects"));
    if (projects) this.projects = projects.items.map((project) => project.project_id);
  }

  async loadMore(): Promise<void> {
    const cursor = this.more;
    if (!cursor) return;
    const page = await ui.trying(() => call("get", "/api/v1/conversations", { query: { ...this.asking(), cursor } }));
    if (!page) return;
    const known = new Set(this.all.map((conversation) => conversation.conversation_id));
    this.all = [...this.all, ...page.items.filter((conversation) => !known.has(conversation.conversation_id))];
    this.more = page.next ?? null;
  }

  /** Moves a conversation to its place in the order. */
  async touch(id: string): Promise<void> {
    if (this.query.trim() || this.tag) return this.load();
    try {
      const now = await call("get", "/api/v1/conversations/{conversation_id}", { at: { conversation_id: id } });
      const others = this.all.filter((conversation) => conversation.conversation_id !== id);
      this.all = now.archived && !this.archived ? others : [now, ...others];
    } catch {
      this.all = this.all.filter((conversation) => conversation.conversation_id !== id);
    }
  }

  only(tag: string): void {
    this.tag = tag;
    void this.load();
  }

  search(text: string): void {
    this.query = text;
    clearTimeout(this.timer);
    const asked = ++this.asked;
    if (!text.trim()) {
      this.hits = [];
      this.searching = false;
      void this.load();
      return;
    }
    this.searching = true;
    this.timer = setTimeout(async () => {
      const [hits] = await Promise.all([find(text), this.load()]);
      if (asked !== this.asked) return;
      this.hits = hits;
      this.searching = false;
    }, REST_MS);
  }
}

/** Searches while typing: the last word may be a prefix. */
export async function find(text: string, conversation?: string): Promise<Hit[]> {
  const open = /[\p{L}\p{N}]$/u.test(text) && !text.includes('"');
  const q = open ? `${text}*` : text;
  try {
    const page = await call("get", "/api/v1/search", { query: { q, limit: 30, ...(conversation ? { conversation_id: conversation } : {}) } });
    return page.hits;
  } catch {
    return [];
  }
}

/** Most recently active first, derived conversations and sub-agents below their origin. */
function nested(all: Conversation[]): Entry[] {
  const byTime = [...all].sort((a, b) => (a.active_at < b.active_at ? 1 : -1));
  const known = new Set(byTime.map((conversation) => conversation.conversation_id));
  const below = new Map<string, Conversation[]>();
  const top: Conversation[] = [];
  for (const conversation of byTime) {
    const origin = conversation.derived_from?.conversation_id ?? conversation.started_by;
    if (origin && origin !== conversation.conversation_id && known.has(origin)) below.set(origin, [...(below.get(origin) ?? []), conversation]);
    else top.push(conversation);
  }
  const entries: Entry[] = [];
  const visit = (conversation: Conversation, level: number): void => {
    entries.push({ conversation, level });
    for (const child of below.get(conversation.conversation_id) ?? []) visit(child, level + 1);
  };
  for (const conversation of top) visit(conversation, 0);
  return entries;
}

export const list = new List();
