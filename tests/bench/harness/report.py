"""The result file: written whole after every row, so that a run that is cut loses nothing."""

import datetime
import json
import os
import sys

SCHEMA = 1


def progress(text):
    print(f"[{datetime.datetime.now():%H:%M:%S}] {text}", file=sys.stderr, flush=True)


def now():
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


class Report:
    def __init__(self, path, head):
        self.path = path
        self.data = {"schema": SCHEMA, **head, "suites": {}}
        if os.path.exists(path):
            self.merge()
        self.write()

    def merge(self):
        """Suites measured before into the same file stay; a suite run again replaces its own."""
        try:
            with open(self.path, encoding="utf-8") as f:
                old = json.load(f)
            if old.get("schema") == SCHEMA:
                self.data["suites"] = old.get("suites", {})
        except ValueError:
            progress(f"{self.path} is not a result file: replaced")

    def write(self):
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        draft = self.path + ".draft"
        with open(draft, "w", encoding="utf-8") as f:
            json.dump(self.data, f, indent=1)
            f.write("\n")
        os.replace(draft, self.path)

    def suite(self, name, about):
        return Entry(self, name, about)


class Entry:
    """One suite's part: rows (what was measured), checks (what was promised), skipped (and why)."""

    def __init__(self, report, name, about):
        head = {k: report.data[k] for k in ("machine", "commit", "quick") if k in report.data}
        self.report = report
        self.name = name
        self.data = {"date": now(), "about": about, **head, "rows": [], "checks": [], "skipped": []}
        report.data["suites"][name] = self.data
        report.write()

    def row(self, **fields):
        self.data["rows"].append(fields)
        self.report.write()
        return fields

    def check(self, name, ok, detail, timing=False):
        """ok: True, False, or None for "not measured". timing: it is about the machine's own speed, so on
        the simulated GPU it is shown and not judged; timing="load": only when other work disturbs it."""
        off = self.data.get("disturbed") if timing == "load" else timing
        judged = not (off and self.data.get("machine", {}).get("simulated"))
        self.data["checks"].append({"name": name, "ok": ok, "detail": detail, "judged": judged})
        self.report.write()
        word = {True: "ok", False: "FAILED" if judged else "missed", None: "not measured"}[ok]
        progress(f"{self.name}: {name}: {word}: {detail}")

    def skip(self, what, why):
        self.data["skipped"].append({"what": what, "why": why})
        self.report.write()
        progress(f"{self.name}: skipped {what}: {why}")

    def set(self, **fields):
        self.data.update(fields)
        self.report.write()

    def rows(self, **match):
        return [
            r for r in self.data["rows"] if all(r.get(k) == v for k, v in match.items())
        ]
