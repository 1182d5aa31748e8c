// The conversations of a project, and what is found by searching in all of them.
import { call, type Schemas } from "../api/client";
import { ui } from "./ui.svelte";

export type Conversation = Schemas["Conversation"];
export type Hit = Schemas["SearchHit"];

const PAGE = 200;
/** How long typing must rest before the server is asked. */
const REST_MS = 120;

export interface Entry {
  conversation: Conversation;
  /** How deep it is nested under what it was derived from. */
  level: number;
}

export function nameOf(conversation: { title?: string | null; conversation_id: string }): string {
  return conversation.title || conversation.conversation_id;
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
  archived = $state(false);
  hits = $state.raw<Hit[]>([]);
  searching = $state(false);
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  entries: Entry[] = $derived.by(() => {
    const words = this.query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const fits = (conversation: Conversation): boolean => {
      const text = `${nameOf(conversation)} ${conversation.conversation_id} ${tagsOf(conversation).join(" ")}`.toLocaleLowerCase();
      return words.every((word) => text.includes(word)) && (!this.tag || tagsOf(conversation).includes(this.tag));
    };
    return nested(this.all.filter(fits));
  });

  tags = $derived([...new Set(this.all.flatMap(tagsOf))].sort());

  async load(): Promise<void> {
    const page = await ui.trying(() => call("get", "/api/v1/conversations", { query: { limit: PAGE, archived: this.archived } }));
    if (!page) return;
    this.all = page.items;
    this.more = page.next ?? null;
    this.ready = true;
    const projects = await ui.trying(() => call("get", "/api/v1/projects"));
    if (projects) this.projects = projects.items.map((project) => project.project_id);
  }

  async loadMore(): Promise<void> {
    const cursor = this.more;
    if (!cursor) return;
    const page = await ui.trying(() => call("get", "/api/v1/conversations", { query: { limit: PAGE, archived: this.archived, cursor } }));
    if (!page) return;
    const known = new Set(this.all.map((conversation) => conversation.conversation_id));
    this.all = [...this.all, ...page.items.filter((conversation) => !known.has(conversation.conversation_id))];
    this.more = page.next ?? null;
  }

  /** Puts a conversation where it belongs now. */
  async touch(id: string): Promise<void> {
    try {
      const now = await call("get", "/api/v1/conversations/{conversation_id}", { at: { conversation_id: id } });
      const others = this.all.filter((conversation) => conversation.conversation_id !== id);
      this.all = now.archived && !this.archived ? others : [now, ...others];
    } catch {
      this.all = this.all.filter((conversation) => conversation.conversation_id !== id);
    }
  }

  search(text: string): void {
    this.query = text;
    clearTimeout(this.timer);
    const asked = ++this.asked;
    if (!text.trim()) {
      this.hits = [];
      this.searching = false;
      return;
    }
    this.searching = true;
    this.timer = setTimeout(async () => {
      const hits = await find(text);
      if (asked !== this.asked) return;
      this.hits = hits;
      this.searching = false;
    }, REST_MS);
  }
}

/** Searches as somebody types: the last word may be a beginning. */
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

/** Newest first, those that were derived from another one under it. */
function nested(all: Conversation[]): Entry[] {
  const byTime = [...all].sort((a, b) => (a.changed_at < b.changed_at ? 1 : -1));
  const known = new Set(byTime.map((conversation) => conversation.conversation_id));
  const below = new Map<string, Conversation[]>();
  const top: Conversation[] = [];
  for (const conversation of byTime) {
    const origin = conversation.derived_from?.conversation_id;
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
