"""Projections that keep a use and lose a secret, and the attackers that say how far they lose it.

    scatter.py      what is learned of rows, or bought at the door: scatter about the mean, and between classes
    projections.py  principal components, discriminants, and those that trade use against secret
    kernels.py      the same in a kernel's space, and classical scaling
    mixing.py       random directions, multiplied noise, and coordinates told in levels
    drawing.py      random numbers for all of these
    attackers.py    who tries to read the secret, or the row, off its projection
    examples.py     pictures of made-up people, for examples and tests
    from_tables.py  projections of a private table, attacked, by the marked door
    comparison.py   all of them side by side: use against the best attacker, as a table and a picture

Lives here: transformers of rows, and what breaks them. **A projection is not differentially private**: it loses what was named,
against attackers that were tried. Directions that were fitted to a noisy `Scatter` are private; the rows that they project are
not.
May not live here: a promise; noise of its own making (`noise` has the laws).
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.compress.comparison import TradeOff as TradeOff
    from cloister.compress.comparison import trade_off as trade_off
    from cloister.compress.examples import drawn_faces as drawn_faces
    from cloister.compress.from_tables import Projected as Projected
    from cloister.compress.from_tables import publish_projections as publish_projections
    from cloister.compress.kernels import KDCA as KDCA
    from cloister.compress.kernels import MDS as MDS
    from cloister.compress.kernels import KernelPCA as KernelPCA
    from cloister.compress.mixing import MultiplicativeNoise as MultiplicativeNoise
    from cloister.compress.mixing import RandomProjection as RandomProjection
    from cloister.compress.mixing import Rounded as Rounded
    from cloister.compress.projections import DCA as DCA
    from cloister.compress.projections import DUCA as DUCA
    from cloister.compress.projections import LDA as LDA
    from cloister.compress.projections import MDR as MDR
    from cloister.compress.projections import PCA as PCA
    from cloister.compress.projections import RUCA as RUCA
    from cloister.compress.scatter import Scatter as Scatter

__all__, __getattr__, __dir__ = Lazily(__name__).public
