"""Small pictures and animations: a grid of ids, lines of text below, many of them one after the other."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from forethought.files import replacing

INK, PAPER = (235, 235, 235), (24, 25, 30)
TEXT_SIZE = 14
_COLOURS = ("#8fbf6a", "#d1495b", "#2e6f40", "#8d99ae", "#f2c14e", "#4d9de0", "#7768ae", "#3bb273")


def grid(cells: UInt8[np.ndarray, "height width channel"], tile: int = 32) -> Image.Image:
    """Draw ids as colours: the first channel fills the cell, each other one that is not 0 puts a dot on it."""
    height, width, channels = cells.shape
    image = Image.new("RGB", (width * tile, height * tile), PAPER)
    pen = ImageDraw.Draw(image)
    for row in range(height):
        for column in range(width):
            x, y = column * tile, row * tile
            pen.rectangle((x, y, x + tile - 2, y + tile - 2), _COLOURS[cells[row, column, 0] % len(_COLOURS)])
            for channel in range(1, channels):
                if cells[row, column, channel]:
                    inset = tile * (2 + channel) // 10
                    pen.ellipse((x + inset, y + inset, x + tile - inset, y + tile - inset), PAPER)
    return image


def captioned(image: Image.Image, lines: Sequence[str]) -> Image.Image:
    """The picture with lines of text below; long ones are broken, none is lost."""
    font = _font()
    broken = [part for line in lines for part in _broken(line, image.width - 12)]
    step = TEXT_SIZE + 6
    whole = Image.new("RGB", (image.width, image.height + step * len(broken) + 8), PAPER)
    whole.paste(image)
    pen = ImageDraw.Draw(whole)
    for number, line in enumerate(broken):
        pen.text((6, image.height + 4 + step * number), line, INK, font)
    return whole


def save_animation(path: str | Path, frames: Iterable[Image.Image], fps: float) -> int:
    """Write an animated WebP that repeats for ever; the last picture stays for two seconds.

    Frames of different heights are put on the tallest.

    Returns:
        The number of frames.

    Raises:
        ValueError: There are no frames, or `fps` is not positive.
    """
    if not (fps > 0 and math.isfinite(fps)):
        raise ValueError(f"fps is {fps}; it must be a positive number")
    kept = list(frames)
    if not kept:
        raise ValueError("an animation needs a frame")
    size = max(frame.width for frame in kept), max(frame.height for frame in kept)
    kept = [_on_paper(frame, size) for frame in kept]
    times = [round(1000 / fps)] * (len(kept) - 1) + [2000]
    with replacing(path) as temporary, temporary.open("wb") as file:
        kept[0].save(
            file, "WEBP", save_all=True, append_images=kept[1:], duration=times, loop=0, lossless=True, method=0
        )
    return len(kept)


def _on_paper(frame: Image.Image, size: tuple[int, int]) -> Image.Image:
    if frame.size == size:
        return frame
    whole = Image.new("RGB", size, PAPER)
    whole.paste(frame)
    return whole


@lru_cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    try:
        import matplotlib

        return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), TEXT_SIZE)
    except (ImportError, OSError):
        return ImageFont.load_default(TEXT_SIZE)


def _broken(line: str, width: int) -> list[str]:
    parts, part = [], ""
    for word in line.split(" "):
        longer = f"{part} {word}" if part else word
        if part and _font().getlength(longer) > width:
            parts.append(part)
            longer = word
        part = longer
    return [*parts, part]
