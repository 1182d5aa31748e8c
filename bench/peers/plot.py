"""Draws bars on a logarithmic scale for a few rows; longer is worse, except for rates."""
import html
import math

PLOTTED = ("clients1", "clients64", "slow64", "append1000", "fork10000", "edit1000", "path10000",
           "common", "open", "grown")
WIDTH, LABEL, BAR, GAP, COLUMNS = 470, 190, 14, 5, 2


def plain(label):
    return label.replace("*", "").replace("`", "")


def panel(report, row, left, top):
    """Returns the bars of one row and their total height."""
    import report as writing

    found = [(peer, report.figure(peer, row)) for peer in report.peers]
    found = [(peer, figure) for peer, figure in found if figure]
    if not found:
        return [], 0
    figures = [figure for _, figure in found]
    low = math.floor(math.log10(min(figures)) - 0.3)
    high = math.log10(max(figures))
    room = WIDTH - LABEL - 90
    better = "more" if row.unit == "rate" else "less"
    out = [f'<text x="{left}" y="{top + 12}" class="title">{html.escape(row.name)} '
           f'({better} is better)</text>']
    for place, (peer, figure) in enumerate(found):
        y = top + 22 + place * (BAR + GAP)
        length = room * (math.log10(figure) - low) / max(high - low, 0.1)
        kind = "tine" if peer.name.startswith("tine") else "other"
        out.append(f'<text x="{left + LABEL - 6}" y="{y + 11}" class="label">'
                   f'{html.escape(plain(peer.label))}</text>')
        out.append(f'<rect x="{left + LABEL}" y="{y}" width="{length:.0f}" height="{BAR}" '
                   f'class="{kind}"/>')
        out.append(f'<text x="{left + LABEL + length + 5:.0f}" y="{y + 11}">'
                   f'{writing.show(figure, row.unit)}</text>')
    return out, 34 + len(found) * (BAR + GAP)


def draw(report):
    every = [row for wanted in report.tables.values() for row in wanted]
    tops = [34] * COLUMNS
    out = []
    for row in sorted((row for row in every if row.key in PLOTTED),
                      key=lambda row: PLOTTED.index(row.key)):
        column = tops.index(min(tops))
        drawn, height = panel(report, row, 10 + column * (WIDTH + 20), tops[column])
        out += drawn
        tops[column] += height
    width, height = COLUMNS * (WIDTH + 20), max(tops)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        "<style>text{fill:#333}.title{font-size:13px;font-weight:bold}.label{text-anchor:end}"
        ".tine{fill:#2f6f4f}.other{fill:#b9b3a6}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="10" y="18">Logarithmic scale; Tine is green.</text>',
        *out, "</svg>", ""])
