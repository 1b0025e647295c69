"""Structures: whose messages may reach whom.

`STRUCTURES` lists them by name. Each is a specification with typed parameters; its `build(members)` makes the
`Structure` of one society.
"""

from __future__ import annotations

from nlsom.structure.among import Among
from nlsom.structure.custom import Edges
from nlsom.structure.generated import Random, RandomDag, ScaleFree, SmallWorld
from nlsom.structure.hearing import Hearing, Structure, edges, generations, hearing_classes
from nlsom.structure.named import STRUCTURES, Named, shape_of
from nlsom.structure.regular import Chain, Democracy, Everyone, Grid, Hierarchy, Ring
from nlsom.structure.seats import Seats
from nlsom.structure.social import Groups, Layers, Monarchy, Star
from nlsom.structure.spec import StructureSpec

__all__ = [
    "STRUCTURES",
    "Among",
    "Chain",
    "Democracy",
    "Edges",
    "Everyone",
    "Grid",
    "Groups",
    "Hearing",
    "Hierarchy",
    "Layers",
    "Monarchy",
    "Named",
    "Random",
    "RandomDag",
    "Ring",
    "ScaleFree",
    "Seats",
    "SmallWorld",
    "Star",
    "Structure",
    "StructureSpec",
    "edges",
    "generations",
    "hearing_classes",
    "shape_of",
]
