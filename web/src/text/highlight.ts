// Syntax highlighting. The highlighter and each language are loaded on first use.
import type { HLJSApi, LanguageFn } from "highlight.js";

type Loader = () => Promise<{ default: LanguageFn }>;
const LANGUAGES: Record<string, Loader> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  go: () => import("highlight.js/lib/languages/go"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  python: () => import("highlight.js/lib/languages/python"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  toml: () => import("highlight.js/lib/languages/ini"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};
const OTHER_NAMES: Record<string, string> = {
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", js: "javascript", jsx: "javascript", ts: "typescript",
  tsx: "typescript", py: "python", rs: "rust", yml: "yaml", html: "xml", svg: "xml", md: "markdown", "c++": "cpp", ini: "toml",
};
/** Longer code is not highlighted. */
const LONGEST = 50_000;

let highlighter: Promise<HLJSApi> | undefined;

async function ready(language: string): Promise<HLJSApi> {
  highlighter ??= import("highlight.js/lib/core").then((module) => module.default);
  const core = await highlighter;
  if (!core.getLanguage(language)) core.registerLanguage(language, (await LANGUAGES[language]!()).default);
  return core;
}

export async function highlight(within: HTMLElement): Promise<void> {
  for (const place of within.querySelectorAll<HTMLElement>("code[data-language]:not(.coloured)")) {
    const said = place.dataset.language!.toLowerCase();
    const language = OTHER_NAMES[said] ?? said;
    const text = place.textContent ?? "";
    if (!Object.hasOwn(LANGUAGES, language) || text.length > LONGEST) continue;
    place.classList.add("coloured");
    const core = await ready(language);
    place.innerHTML = core.highlight(text, { language, ignoreIllegals: true }).value;
  }
}
