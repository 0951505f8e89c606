"""Print the rows that tests/faults left in a folder as a Markdown table, and write them to a JSON."""

import json
import sys
from pathlib import Path

COLUMNS = {
    "fault": "fault",
    "database": "database",
    "times": "times",
    "acknowledged": "acknowledged",
    "lost": "lost",
    "double_counted": "double counted",
    "told_to_retry": "told to retry",
    "unanswered": "unanswered",
}


def main(folder: Path) -> int:
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json") if path.name != "table.json"]
    rows.sort(key=lambda row: (row["fault"].lower(), row["database"]))
    (folder / "table.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print("| " + " | ".join(COLUMNS.values()) + " |")
    print("|" + "|".join(" --- " if column in ("fault", "database") else " ---: " for column in COLUMNS) + "|")
    for row in rows:
        print("| " + " | ".join(f"{row[column]:,}" if isinstance(row[column], int) else row[column] for column in COLUMNS) + " |")
    total = {column: sum(row[column] for row in rows) for column in ("times", "acknowledged", "lost", "double_counted")}
    print(
        f"\n{total['times']:,} faults, {total['acknowledged']:,} acknowledged outcomes, "
        f"{total['lost']:,} lost, {total['double_counted']:,} double counted"
    )
    return 0 if rows and total["lost"] == total["double_counted"] == 0 else 1


sys.exit(main(Path(sys.argv[1])))
