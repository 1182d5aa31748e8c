// The current view, kept in the URL: every turn has a permalink.

export interface Place {
  project: string;
  conversation: string;
  turn: string;
  view: "tree" | "commits" | "compare" | "facts" | "entity" | "branches";
  /** The turns to compare, or the entity. */
  from: string;
  to: string;
  entity: string;
}

const NOWHERE: Place = { project: "default", conversation: "", turn: "", view: "tree", from: "", to: "", entity: "" };

export function parse(hash: string): Place {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decode);
  const place = { ...NOWHERE };
  if (parts[0] === "p") [, place.project = "default"] = parts.splice(0, 2);
  if (parts[0] === "facts") return { ...place, view: "facts" };
  if (parts[0] === "e" && parts[1]) return { ...place, view: "entity", entity: parts[1] };
  if (parts[0] !== "c" || !parts[1]) return place;
  place.conversation = parts[1];
  if (parts[2] === "t" && parts[3]) place.turn = parts[3];
  if (parts[2] === "commits") place.view = "commits";
  if (parts[2] === "branches") place.view = "branches";
  if (parts[2] === "compare") return { ...place, view: "compare", from: parts[3] ?? "", to: parts[4] ?? "" };
  return place;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function link(place: Partial<Place>): string {
  const { project, conversation, turn, view, from, to, entity } = { ...NOWHERE, project: route.project, ...place };
  const parts: string[] = project === "default" ? [] : ["p", project];
  if (view === "facts") parts.push("facts");
  else if (view === "entity") parts.push("e", entity);
  else if (conversation) {
    parts.push("c", conversation);
    if (view === "commits" || view === "branches") parts.push(view);
    else if (view === "compare") parts.push("compare", from, to);
    else if (turn) parts.push("t", turn);
  }
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

class Route {
  place = $state.raw<Place>(parse(location.hash));
  /** Every request names the project. */
  get project(): string {
    return this.place.project;
  }

  constructor() {
    // Also called for links and for URLs typed by the user.
    addEventListener("popstate", () => (this.place = parse(location.hash)));
  }

  go(place: Partial<Place>, replace = false): void {
    const to = link(place);
    if (replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    this.place = parse(to);
  }
}

export const route = new Route();
