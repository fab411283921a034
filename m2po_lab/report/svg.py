"""A matplotlib figure as inline SVG that a strict content policy accepts and a theme can colour.

A page without `unsafe-inline` ignores `style` attributes and unhashed `<style>` elements, so each
declaration becomes a presentation attribute. Ids get a prefix, for several figures share one page.
"""

import io
import re
from typing import Any
from xml.etree import ElementTree

from m2po_lab.report.palette import INK, VARIABLES

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FONT = "var(--sans)"

_FONT = re.compile(r"^(?:(\w+) )?(?:(\w+) )?([\d.]+)px ")
_DROPPED = frozenset({"metadata", "style"})
_WEIGHTS = frozenset({"bold", "600", "700"})


def inline_svg(figure: Any, name: str, title: str) -> str:
    """Return one figure as an `<svg>` element.

    Args:
        figure: a matplotlib figure.
        name: prefix for its ids, unique on the page.
        title: what a screen reader says.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in _DROPPED:
                parent.remove(child)
    for element in root.iter():
        _clean(element, name)
    root.attrib.pop("width", None)
    root.attrib.pop("height", None)
    root.set("role", "img")
    root.set("aria-label", title)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    """Turn styles into attributes, colours into variables, and make ids the figure's own."""
    attributes = element.attrib
    for declaration in attributes.pop("style", "").split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            attributes.update(_presentation(name.strip(), value.strip()))
    for key, value in list(attributes.items()):
        if key == "id":
            attributes[key] = f"{prefix}-{value}"
        elif value.startswith("#") and key == f"{{{XLINK}}}href":
            attributes[key] = f"#{prefix}-{value[1:]}"
        elif value.startswith("url(#"):
            attributes[key] = f"url(#{prefix}-{value[5:]}"
        else:
            attributes[key] = VARIABLES.get(value, value)
    if _local(element.tag) == "text":
        attributes.setdefault("fill", VARIABLES[INK])


def _presentation(name: str, value: str) -> dict[str, str]:
    """One declaration of a style as attributes; a font shorthand becomes its parts."""
    if name != "font":
        return {name: value}
    found = _FONT.match(value)
    size = found[3] if found else "10"
    bold = {"font-weight": "bold"} if found and {found[1], found[2]} & _WEIGHTS else {}
    return {"font-size": f"{size}px", "font-family": FONT, **bold}


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
