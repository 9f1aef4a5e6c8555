"""SVG pictures by hand: lines and grouped bars, readable in light and dark, no library needed."""

from html import escape

COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#6b7280", "#dc2626")
STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#374151}.t{font-size:14px;font-weight:600}"
    ".g{stroke:#d1d5db}.a{stroke:#6b7280}"
    "@media(prefers-color-scheme:dark){text{fill:#d1d5db}.g{stroke:#374151}.a{stroke:#9ca3af}}</style>"
)


def svg(width, height, body, title):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}">{STYLE}'
        + "".join(body)
        + "</svg>\n"
    )


def text(x, y, words, anchor="start", cls=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
            + (f' class="{cls}"' if cls else "") + f">{escape(str(words))}</text>")


def lines(title, x_name, y_name, series, diagonal=False, top=100):
    """series: name -> [(x, y)], both 0..top."""
    left, right, upper, lower, width, height = 60, 470, 50, 340, 620, 390
    body = [text(left, 24, title, cls="t")]

    def at(x, y):
        return left + (right - left) * x / top, lower - (lower - upper) * min(y, top) / top

    for tick in range(0, top + 1, 20):
        x, y = at(tick, tick)
        body.append(f'<path class="g" d="M{left} {y:.1f}H{right}M{x:.1f} {lower}V{upper}"/>')
        body += [text(left - 8, y + 4, tick, "end"), text(x, lower + 18, tick, "middle")]
    if diagonal:
        body.append(f'<path class="a" stroke-dasharray="4 4" d="M{left} {lower}L{right} {upper}"/>')
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(*p) for p in points))
        body.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for p in points:
            x, y = at(*p)
            body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        y = upper + 20 * i
        body.append(f'<rect x="{right + 20}" y="{y}" width="12" height="12" fill="{colour}"/>')
        body.append(text(right + 38, y + 10, name))
    body += [text((left + right) / 2, lower + 40, x_name, "middle"), text(left, upper - 10, y_name)]
    return svg(width, height, body, title)


def bars(title, groups, order, top=2.0):
    """groups: [(label, {series: value})], horizontal, a row a group."""
    left, right, row, width = 330, 620, 46, 720
    body = [text(10, 24, title, cls="t")]
    used = [s for s in order if any(s in values for _, values in groups)]
    for i, name in enumerate(used):
        body.append(f'<rect x="{10 + 110 * i}" y="36" width="12" height="12" fill="{COLOURS[i]}"/>')
        body.append(text(28 + 110 * i, 46, name))
    upper, height = 70, 70 + row * len(groups) + 30
    for tick in range(0, 5):
        x = left + (right - left) * tick / 4
        body.append(f'<path class="g" d="M{x:.1f} {upper - 6}V{height - 26}"/>')
        body.append(text(x, height - 10, f"{top * tick / 4:g}", "middle"))
    for g, (label, values) in enumerate(groups):
        y = upper + row * g
        body.append(text(left - 8, y + 20, label, "end"))
        bar = (row - 12) / max(1, len(used))
        for i, name in enumerate(used):
            if name not in values:
                continue
            length = (right - left) * min(values[name], top) / top
            body.append(f'<rect x="{left}" y="{y + i * bar:.1f}" width="{length:.1f}" '
                        f'height="{bar - 1:.1f}" fill="{COLOURS[i]}"/>')
            body.append(text(left + length + 4, y + i * bar + bar - 2, f"{values[name]:.2f}"))
    return svg(width, height, body, title)
