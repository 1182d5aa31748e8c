// Small words: times, counts, short hashes.

export function ago(time: string | number, now = Date.now()): string {
  const seconds = Math.max(0, (now - new Date(time).getTime()) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return new Date(time).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

export function when(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export function short(hash: string): string {
  return hash.replace("sha256:", "").slice(0, 12);
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

/** Words of a thing that may be written anywhere in a text of Unicode scalar values. */
export function scalars(text: string): string[] {
  return Array.from(text);
}
