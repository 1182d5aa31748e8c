// Formats times, counts and short hashes.

// Created once, because creating a formatter is slow.
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const digits = new Intl.NumberFormat();

export function ago(time: string | number, now = Date.now()): string {
  const seconds = Math.max(0, (now - new Date(time).getTime()) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return day.format(new Date(time));
}

export function when(time: string): string {
  return moment.format(new Date(time));
}

export function short(hash: string): string {
  return hash.replace("sha256:", "").slice(0, 12);
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${digits.format(number)} ${number === 1 ? one : many}`;
}
