import numpy as np
import pytest
from PIL import Image

from forethought.pictures import captioned, grid, save_animation


def frames(count, height=20):
    return [Image.new("RGB", (30, height), (number, 0, 0)) for number in range(count)]


def test_an_animation_has_its_frames_at_its_pace(tmp_path):
    path = tmp_path / "a.webp"
    assert save_animation(path, frames(4), fps=8.0) == 4
    with Image.open(path) as image:
        assert image.n_frames == 4
        durations, shown = [], []
        for number in range(4):
            image.seek(number)
            image.load()
            durations.append(image.info["duration"])
            shown.append(image.convert("RGB").getpixel((0, 0))[0])
    assert durations == [125, 125, 125, 2000]
    assert shown == [0, 1, 2, 3]


def test_frames_of_different_heights_share_the_tallest(tmp_path):
    save_animation(tmp_path / "a.webp", [*frames(2), *frames(1, height=50)], fps=1.0)
    with Image.open(tmp_path / "a.webp") as image:
        assert image.size == (30, 50)


@pytest.mark.parametrize(
    ("count", "fps", "message"), [(0, 8.0, "needs a frame"), (2, 0.0, "fps is 0.0"), (2, -1.0, "fps is -1")]
)
def test_what_cannot_be_shown_is_refused_and_leaves_the_old_file(tmp_path, count, fps, message):
    path = tmp_path / "a.webp"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        save_animation(path, frames(count), fps)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_long_lines_are_broken_and_words_kept():
    short, long = (captioned(Image.new("RGB", (120, 10)), [text]) for text in ("word", "word " * 20 + "☃"))
    assert short.width == long.width == 120
    assert long.height > short.height + 60
    endless = captioned(Image.new("RGB", (60, 10)), ["w" * 50])
    assert endless.height == short.height


def test_a_grid_shows_ids_and_marks():
    cells = np.zeros((2, 3, 2), np.uint8)
    cells[0, 1, 0], cells[1, 2, 1] = 1, 1
    picture = np.asarray(grid(cells, tile=10))
    assert picture.shape == (20, 30, 3)
    corners = picture[1::10, 1::10]
    assert (corners[0, 1] != corners[0, 0]).any()
    assert (corners[1] == corners[0, 0]).all()
    assert (picture[15, 25] != corners[0, 0]).any()
    assert (picture[15, 5] == corners[0, 0]).all()
