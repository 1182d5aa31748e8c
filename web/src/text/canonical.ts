// A turn's hash, recomputed here from what the server sent: SHA-256 over the canonical JSON
// (RFC 8785, integers beyond 2^53 with all their digits) of what was said and what led to it.

/** An integer that a double cannot hold, by its digits. */
export class Digits {
  constructor(readonly text: string) {}
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/** Reads JSON without losing digits of large integers. */
export function parseExactly(text: string): unknown {
  const revive: Reviver = (_key, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const source = context?.source;
    return source && /^-?\d+$/.test(source) ? new Digits(source) : value;
  };
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}

export function canonical(value: unknown): string {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

export interface Said {
  role: string;
  content?: unknown;
  created_at: string;
  parent_turn_hash?: string | null;
  tool_call_id?: string | null;
}

/** One plain text block stands as its bare text. */
function bare(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content;
  const [block] = content;
  const plain = Object.keys(block).length === 2 && block.type === "text" && typeof block.text === "string";
  return plain ? block.text : content;
}

export async function turnHash(said: Said): Promise<string> {
  const text = canonical({
    role: said.role,
    content: bare(said.content),
    created_at: said.created_at,
    parent_turn_hash: said.parent_turn_hash ?? null,
    ...(said.tool_call_id ? { tool_call_id: said.tool_call_id } : {}),
  });
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `sha256:${hex}`;
}
