// The change feed: server-sent events over `fetch`, so that a token can be sent. After a broken
// connection it resumes after the last event, so nothing is missed.
import { access, address, headers, inProject, type Schemas } from "./client";

export type Event = Schemas["Operation"] & { position: number; project_id: string };

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export interface Frame {
  id: string;
  event: string;
  data: string;
}

/** Parses a stream of server-sent events. */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        yield frame(rest.slice(0, end));
        rest = rest.slice(end + 2);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function frame(text: string): Frame {
  const made: Frame = { id: "", event: "message", data: "" };
  for (const line of text.split("\n")) {
    const [name, value] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).replace(/^ /, "")];
    if (name === "id" || name === "event") made[name] = value;
    if (name === "data") made.data += made.data ? `\n${value}` : value;
  }
  return made;
}

export interface Follower {
  event: (event: Event) => void;
  connected: (yes: boolean) => void;
}

/** Follows the feed until the signal aborts. */
export async function follow(follower: Follower, signal: AbortSignal): Promise<void> {
  let last = "";
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const more: Record<string, string> = last ? { "last-event-id": last } : {};
      const response = await fetch(address("/api/v1/events", {}, inProject()), { headers: headers(more), signal });
      if (response.status === 401) access.wanted();
      // A replaced store has other positions: start at its end.
      if (response.status === 400) last = "";
      if (response.ok && response.body) {
        follower.connected(true);
        pause = FIRST_PAUSE_MS;
        for await (const { id, data } of frames(response.body)) {
          if (id) last = id;
          if (data) follower.event(JSON.parse(data) as Event);
        }
      }
    } catch {
      // Reported by `connected` and retried below.
    }
    if (signal.aborted) return;
    follower.connected(false);
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}
