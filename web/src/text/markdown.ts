// Markdown as HTML. Content is data: HTML in it is shown as text, links that could run code stay
// text, and nothing is fetched (images become links).
import MarkdownIt from "markdown-it";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true, typographer: false });
const { escapeHtml } = markdown.utils;

const standardLink = markdown.validateLink.bind(markdown);
markdown.validateLink = (url) => standardLink(url) && /^(https?:|mailto:|#|\/|[^:]*$)/i.test(url.trim());

markdown.renderer.rules.link_open = (tokens, at, options, _env, self) => {
  tokens[at]!.attrSet("target", "_blank");
  tokens[at]!.attrSet("rel", "noopener noreferrer nofollow");
  return self.renderToken(tokens, at, options);
};

markdown.renderer.rules.image = (tokens, at) => {
  const address = tokens[at]!.attrGet("src") ?? "";
  const name = tokens[at]!.content || address;
  return `<a class="outside" href="${escapeHtml(address)}" target="_blank" rel="noopener noreferrer nofollow">🖼 ${escapeHtml(name)}</a>`;
};

function code(text: string, language: string): string {
  const name = language.split(/\s+/)[0] ?? "";
  const head = `<div class="code-head"><span>${escapeHtml(name)}</span><button type="button" class="copy">Copy</button></div>`;
  return `<div class="code">${head}<pre tabindex="0"><code data-language="${escapeHtml(name)}">${escapeHtml(text)}</code></pre></div>`;
}
markdown.renderer.rules.fence = (tokens, at) => code(tokens[at]!.content, tokens[at]!.info.trim());
markdown.renderer.rules.code_block = (tokens, at) => code(tokens[at]!.content, "");

// markdown-it aligns columns by style attributes, which the content security policy forbids.
for (const rule of ["th_open", "td_open"]) {
  markdown.renderer.rules[rule] = (tokens, at, options, _env, self) => {
    const style = tokens[at]!.attrGet("style");
    if (style) {
      tokens[at]!.attrs = [["class", style.replace("text-align:", "align-")]];
    }
    return self.renderToken(tokens, at, options);
  };
}

/** Caches rendered texts: scrolling back and forth renders the same ones again. */
const KEPT = 400;
const kept = new Map<string, string>();

export function toHtml(text: string): string {
  const known = kept.get(text);
  if (known !== undefined) return known;
  const html = markdown.render(text);
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value!);
  kept.set(text, html);
  return html;
}
