// Requests to the API, typed by its OpenAPI description.
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";
type Operation<P extends keyof paths, M extends Method> = M extends keyof paths[P] ? paths[P][M] : never;
export type AnswerOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : unknown;
type BodyOf<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type PlaceOf<O> = O extends { parameters: { path: infer Q } } ? Q : never;

export interface Asking<O> {
  at?: PlaceOf<O>;
  query?: Partial<QueryOf<O>>;
  body?: BodyOf<O>;
  ifMatch?: string;
  signal?: AbortSignal;
}

/** An error answer, as in RFC 9457. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly particulars: Record<string, unknown> = {},
  ) {
    super(detail);
  }
}

const TOKEN = "tine-token";

/** The actor recorded for this tab, which distinguishes its changes from those of others. */
export const actor = `page-${crypto.getRandomValues(new Uint16Array(1))[0]!.toString(16).padStart(4, "0")}`;

let project = "default";

/** Sets the project that every request names. */
export function setProject(name: string): void {
  project = name;
}

export function inProject(): { project_id?: string } {
  return project === "default" ? {} : { project_id: project };
}

export const access = {
  get token(): string | null {
    return sessionStorage.getItem(TOKEN);
  },
  set token(value: string | null) {
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  },
  /** Called when the server requires a token. */
  wanted: (): void => {},
};

export function headers(more: Record<string, string> = {}): Record<string, string> {
  const { token } = access;
  return { "x-tine-actor": actor, ...(token ? { authorization: `Bearer ${token}` } : {}), ...more };
}

export function address(path: string, place: object = {}, query: object = {}): string {
  let filled = path;
  for (const [name, value] of Object.entries(place)) filled = filled.replace(`{${name}}`, encodeURIComponent(String(value)));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null) search.set(name, String(value));
  return search.size ? `${filled}?${search}` : filled;
}

/** Reads the problem from an error answer. */
export async function problemOf(response: Response): Promise<Problem> {
  if (response.status === 401) access.wanted();
  try {
    const { code, detail, ...rest } = await response.json();
    return new Problem(response.status, code ?? "internal", detail ?? response.statusText, rest);
  } catch {
    return new Problem(response.status, "internal", `The server answered ${response.status} without a reason.`);
  }
}

export async function send(method: string, url: string, body?: unknown, asking: { ifMatch?: string; signal?: AbortSignal } = {}): Promise<Response> {
  const more: Record<string, string> = {};
  if (body !== undefined) more["content-type"] = "application/json";
  if (asking.ifMatch) more["if-match"] = asking.ifMatch;
  let response: Response;
  try {
    response = await fetch(url, {
      method: method.toUpperCase(),
      headers: headers(more),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(asking.signal ? { signal: asking.signal } : {}),
    });
  } catch (error) {
    if (asking.signal?.aborted) throw error;
    throw new Problem(0, "unreachable", "Cannot reach the server. Is `tine serve` still running?");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function call<P extends keyof paths & string, M extends Method>(
  method: M,
  path: P,
  asking: Asking<Operation<P, M>> = {},
): Promise<AnswerOf<P, M>> {
  const url = address(path, asking.at as object, { ...inProject(), ...(asking.query as object) });
  const body = asking.body ?? (method === "post" ? {} : undefined);
  const response = await send(method, url, body, asking);
  return (await response.json()) as AnswerOf<P, M>;
}
