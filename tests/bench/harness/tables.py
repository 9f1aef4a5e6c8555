"""Markdown tables from rows. A suite says what its columns are; nothing is computed here."""


class Table:
    def __init__(self, title, columns, rows, note=None):
        self.title, self.columns, self.rows, self.note = title, columns, rows, note


def cell(value, digits=None):
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if digits is None:
            digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2
        return f"{value:,.{digits}f}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10000 else str(value)
    return str(value)


def markdown(table):
    lines = [f"**{table.title}**", ""] if table.title else []
    lines.append("| " + " | ".join(table.columns) + " |")
    lines.append("|" + "|".join("---" if i == 0 else "---:" for i in range(len(table.columns))) + "|")
    for row in table.rows:
        lines.append("| " + " | ".join(cell(v) for v in row) + " |")
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def checks(entry):
    """What was promised and how it came out; the failures first."""
    order = {False: 0, None: 1, True: 2}
    words = {False: "**no**", None: "not measured", True: "yes"}

    def kept(check):
        return words[check["ok"]] + ("" if check.get("judged", True) else " (simulated: not judged)")

    found = sorted(entry.get("checks", []), key=lambda c: order[c["ok"]])
    if not found:
        return ""
    return markdown(Table("", ["promise", "kept", "measured"],
                          [(c["name"], kept(c), c["detail"]) for c in found]))


def unique(values):
    seen = []
    for v in values:
        if v not in seen:
            seen.append(v)
    return seen
