"""What the environment sets up for each mission: who lies where, how the doors are, and what is to be done.

Three rooms of 4x4 cells stand in a row. The agent starts in the left one; the yellow door leads to the middle room, the
purple door from there to the right one.
"""

from dataclasses import dataclass
from typing import Literal

BALL, BOX, KEY, PURPLE_KEY = "red ball", "blue box", "yellow key", "purple key"
DOOR, FAR_DOOR = "yellow door", "purple door"

Door = Literal["open", "closed", "locked"]
Step = tuple[str, ...]
"""A verb (`go to`, `pick up`, `open`, `put`) and what it is about: a thing, or for `put` a thing and its neighbour."""


@dataclass(frozen=True)
class Level:
    """The set-up of one mission."""

    steps: tuple[Step, ...]
    """What is to be done: one step, or two in this order."""
    here: tuple[str, ...] = (BALL, BOX, KEY)
    """Things in the agent's room."""
    middle: tuple[str, ...] = ()
    """Things in the middle room."""
    far: tuple[str, ...] = ()
    """Things in the right room."""
    door: Door = "closed"
    """The yellow door."""
    far_door: Door = "closed"
    """The purple door."""


LEVELS: dict[str, Level] = {
    "goto_ball": Level((("go to", BALL),)),
    "goto_box": Level((("go to", BOX),)),
    "goto_key": Level((("go to", KEY),)),
    "goto_door": Level((("go to", DOOR),)),
    "pickup_ball": Level((("pick up", BALL),)),
    "pickup_box": Level((("pick up", BOX),)),
    "pickup_key": Level((("pick up", KEY),)),
    "open_door": Level((("open", DOOR),)),
    "ball_then_door": Level((("pick up", BALL), ("open", DOOR))),
    "put_ball": Level((("put", BALL, BOX),)),
    "unlock_door": Level((("open", DOOR),), door="locked"),
    "goto_ball_open": Level((("go to", BALL),), (BOX, KEY), (BALL,), door="open"),
    "goto_ball_closed": Level((("go to", BALL),), (BOX, KEY), (BALL,)),
    "pickup_ball_closed": Level((("pick up", BALL),), (BOX, KEY), (BALL,)),
    "goto_box_locked": Level((("go to", BOX),), (BALL, KEY), (BOX,), door="locked"),
    "pickup_box_locked": Level((("pick up", BOX),), (BALL, KEY), (BOX,), door="locked"),
    "bring_ball": Level((("put", BALL, BOX),), (BALL, KEY), (BOX,)),
    "fetch_ball": Level((("put", BALL, BOX),), (BOX, KEY), (BALL,)),
    "bring_ball_locked": Level((("put", BALL, BOX),), (BALL, KEY), (BOX,), door="locked"),
    "open_far_door": Level((("open", FAR_DOOR),)),
    "goto_ball_far": Level((("go to", BALL),), (BOX, KEY), (), (BALL,)),
    "unlock_far_door": Level((("open", FAR_DOOR),), middle=(PURPLE_KEY,), far_door="locked"),
    "unlock_both_doors": Level((("open", FAR_DOOR),), middle=(PURPLE_KEY,), door="locked", far_door="locked"),
    "pickup_box_far": Level((("pick up", BOX),), (BALL, KEY), (PURPLE_KEY,), (BOX,), door="locked", far_door="locked"),
}
"""Task id -> its set-up."""
