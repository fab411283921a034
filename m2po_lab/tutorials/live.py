"""Sliders that redraw a picture in place, and sentences whose numbers come from the program."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from m2po_lab.tutorials.pictures import Picture

EXTRA = "pip install 'm2po-lab[notebooks]'"


def say(text: str) -> None:
    """Show Markdown; notebooks write numbers into it with f-strings."""
    shown = _module("IPython.display")
    shown.display(shown.Markdown(text))


def slide(draw: Callable[..., Picture], *, start: dict[str, Any], **stops: Sequence[Any]) -> None:
    """Show a picture for some values, with a slider for each that redraws it.

    The picture is an ordinary output, so a saved notebook shows it for the values it started from;
    a slider moves nothing until the notebook runs.

    Args:
        draw: called with one keyword a slider.
        start: the first value of each slider.
        stops: name -> the values it can take, in order.

    Raises:
        ModuleNotFoundError: the extra `notebooks` is not installed.
        ValueError: a start that is none of the stops.
    """
    for name, values in stops.items():
        if start.get(name) not in values:
            raise ValueError(f"slider {name!r} starts at {start.get(name)!r}; it has {values!r}")
    widgets, display = _module("ipywidgets"), _module("IPython.display").display
    sliders = {
        name: widgets.SelectionSlider(
            options=[(_label(value), value) for value in values],
            value=start[name],
            description=name.replace("_", " "),
            continuous_update=False,
            layout=widgets.Layout(width="28rem"),
            style={"description_width": "9rem"},
        )
        for name, values in stops.items()
    }
    bundle = widgets.VBox(list(sliders.values()))._repr_mimebundle_()
    at = ", ".join(f"{name.replace('_', ' ')} = {_label(start[name])}" for name in stops)
    display({**bundle, "text/plain": f"[sliders: {at}]"}, raw=True)
    picture = display(draw(**start), display_id=True)

    def redraw(_: Any) -> None:
        picture.update(draw(**{name: slider.value for name, slider in sliders.items()}))

    for slider in sliders.values():
        slider.observe(redraw, names="value")


def _module(name: str) -> Any:
    """Import what only a notebook needs.

    Raises:
        ModuleNotFoundError: it is not installed; the message names the extra.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"notebooks need {name}; {EXTRA}", name=error.name) from error


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
