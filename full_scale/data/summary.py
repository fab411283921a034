"""What a prepared folder holds, as text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from full_scale.data.prepare import FILES


def summary(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Write a manifest for people: rows by set, what was left out and why, and what is odd.

    Args:
        folder: where the data lie.
        manifest: what `prepare` returned.
    """
    lines = []
    for name in FILES:
        if name not in manifest["files"]:
            continue
        entry = manifest["files"][name]
        lines.append(f"{folder / name}: {entry['rows']:,} rows, sha256 {entry['sha256'][:12]}")
        for each, used in entry["made_of"].items():
            lines += _set(each, manifest["sets"][each], used["copies"])
    return "".join(f"{line}\n" for line in lines)


def _set(name: str, entry: Mapping[str, Any], copies: int) -> list[str]:
    times = f" x {copies}" if copies > 1 else ""
    lines = [f"  {name:<11}{entry['rows']:>7,}{times} of {entry['read']:,} from {_origin(entry)}"]
    lines += [f"{'':<13}left out: {text}" for text in _reasons(entry["left_out"])]
    lines += [f"{'':<13}kept: {text}" for text in _reasons(entry["kept_although"])]
    return lines + [f"{'':<13}{remark}" for remark in entry["remarks"]]


def _origin(entry: Mapping[str, Any]) -> str:
    source = entry["source"]
    if source["kind"] == "hub":
        return f"{source['id']} at {source['revision'][:12]}"
    return str(source["path"])


def _reasons(tally: Mapping[str, Any]) -> list[str]:
    return [f"{reason}, {found['rows']:,} ({found['first'][0]})" for reason, found in tally.items()]
