"""Brushes of parallel coordinates in a browser."""

from playwright.sync_api import Page


def brush(page: Page, axis: str, low: float, high: float) -> None:
    """Drag along an axis, from one place to another; 0 is its foot and 1 its top."""
    strip = page.locator(f"[data-axis='{axis}']")
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    assert box is not None
    x = box["x"] + box["width"] / 2
    page.mouse.move(x, box["y"] + (1 - low) * box["height"])
    page.mouse.down()
    page.mouse.move(x, box["y"] + (1 - high) * box["height"], steps=4)
    page.mouse.up()
