"""The tiny domain's goals, in words."""

GOALS = (
    ("move", "Move to another cell"),
    ("corner-nw", "Stand in the north-west corner"),
    ("corner-se", "Stand in the south-east corner"),
    ("wood", "Collect wood"),
    ("stone", "Collect stone, which takes wood"),
    ("gem", "Collect the gem, which takes stone"),
    ("wood-nw", "Stand in the north-west corner with wood"),
    ("gem-se", "Stand in the south-east corner with the gem"),
    ("lava", "Step into lava"),
)
"""Ids and texts, in the order that the environment's goal numbers refer to."""

GOAL_IDS = tuple(name for name, _ in GOALS)
