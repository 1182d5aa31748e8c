// Live changes to the open conversation and the list, and who makes them.
import { actor } from "../api/client";
import { follow, type Event } from "../api/live";
import { list } from "./list.svelte";
import { open } from "./open.svelte";
import { ui } from "./ui.svelte";

/** How long another writer is shown as active. */
const HERE_MS = 30_000;
/** Delay that groups changes. */
const TOGETHER_MS = 40;

export interface Writer {
  name: string;
  at: number;
  branch: string;
}

class Live {
  connected = $state(true);
  /** Others who recently wrote to the open conversation. */
  writers = $state.raw<Writer[]>([]);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly touched = new Set<string>();

  /** Follows the project. Returns a function that stops it. */
  start(): () => void {
    const stop = new AbortController();
    let lost = false;
    void follow(
      {
        event: (event) => this.see(event),
        connected: (yes) => {
          this.connected = yes;
          if (yes && lost) void list.load();
          lost = !yes;
        },
      },
      stop.signal,
    );
    const fading = setInterval(() => this.fade(), 5000);
    return () => {
      stop.abort();
      clearInterval(fading);
    };
  }

  private see(event: Event): void {
    this.touched.add(event.conversation_id);
    if (event.conversation_id === open.id) this.seeHere(event);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.show(), TOGETHER_MS);
  }

  private seeHere(event: Event): void {
    const changes = (event.detail as { changes?: { turn_id?: string; after?: { name?: string } | null }[] } | null)?.changes ?? [];
    for (const { turn_id } of changes) if (turn_id) open.contents.forget(turn_id);
    if (event.actor === actor) return;
    const branch = changes.map(({ after }) => after?.name).find(Boolean) ?? "";
    this.writers = [...this.writers.filter(({ name }) => name !== event.actor), { name: event.actor, at: Date.now(), branch }];
    ui.spoken = `${event.actor}: ${event.summary}`;
  }

  private async show(): Promise<void> {
    const touched = [...this.touched];
    this.touched.clear();
    if (open.state === "ready" && touched.includes(open.id)) await ui.trying(() => open.refresh());
    for (const id of touched) void list.touch(id);
  }

  private fade(): void {
    const now = Date.now();
    if (this.writers.some(({ at }) => now - at > HERE_MS)) this.writers = this.writers.filter(({ at }) => now - at <= HERE_MS);
  }
}

export const live = new Live();
