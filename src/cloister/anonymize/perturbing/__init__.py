"""Tables made safer by changing values: grouped, noised, swapped, randomised, cut off, renamed, or kept in two pieces.

columns.py reads and writes frames. microaggregation/: groups of k published as their middle. anatomy/: two tables joined by
group. noise/: added or multiplied, with the original distribution estimated back, and the attack that takes it off.
fitting.py: columns drawn again from what fits them best. pram.py: categories drawn again, and estimated back. swapping.py:
ranks swapped, columns shuffled; record_swapping.py: risky records to other places. coding.py: ends cut off, numbers rounded.
suppression.py: cells emptied. pseudonyms.py: keyed hashes.

None of these is differential privacy: each docstring says what it protects and what it does not.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.anonymize.perturbing.anatomy.anatomy import Anatomized as Anatomized
    from cloister.anonymize.perturbing.anatomy.anatomy import Anatomy as Anatomy
    from cloister.anonymize.perturbing.anatomy.anatomy import largest_share as largest_share
    from cloister.anonymize.perturbing.anatomy.counting import CountEstimate as CountEstimate
    from cloister.anonymize.perturbing.anatomy.counting import estimate_count as estimate_count
    from cloister.anonymize.perturbing.coding import Coded as Coded
    from cloister.anonymize.perturbing.coding import Rounding as Rounding
    from cloister.anonymize.perturbing.coding import TopBottomCoding as TopBottomCoding
    from cloister.anonymize.perturbing.fitting import BestFit as BestFit
    from cloister.anonymize.perturbing.fitting import Candidate as Candidate
    from cloister.anonymize.perturbing.fitting import Drawn as Drawn
    from cloister.anonymize.perturbing.fitting import Fit as Fit
    from cloister.anonymize.perturbing.microaggregation.mdav import blocked_mdav as blocked_mdav
    from cloister.anonymize.perturbing.microaggregation.mdav import mdav as mdav
    from cloister.anonymize.perturbing.microaggregation.mdav import vmdav as vmdav
    from cloister.anonymize.perturbing.microaggregation.microaggregation import Microaggregated as Microaggregated
    from cloister.anonymize.perturbing.microaggregation.microaggregation import Microaggregation as Microaggregation
    from cloister.anonymize.perturbing.microaggregation.replacing import information_loss as information_loss
    from cloister.anonymize.perturbing.microaggregation.univariate import best_groups as best_groups
    from cloister.anonymize.perturbing.noise.additive import AdditiveNoise as AdditiveNoise
    from cloister.anonymize.perturbing.noise.additive import MultiplicativeNoise as MultiplicativeNoise
    from cloister.anonymize.perturbing.noise.additive import Noised as Noised
    from cloister.anonymize.perturbing.noise.filtering import Recovered as Recovered
    from cloister.anonymize.perturbing.noise.filtering import remove_noise as remove_noise
    from cloister.anonymize.perturbing.noise.laws import NoiseLaw as NoiseLaw
    from cloister.anonymize.perturbing.noise.reconstruction import Reconstructed as Reconstructed
    from cloister.anonymize.perturbing.noise.reconstruction import Told as Told
    from cloister.anonymize.perturbing.noise.reconstruction import reconstruct as reconstruct
    from cloister.anonymize.perturbing.pram import PRAM as PRAM
    from cloister.anonymize.perturbing.pram import Frequencies as Frequencies
    from cloister.anonymize.perturbing.pram import Postrandomized as Postrandomized
    from cloister.anonymize.perturbing.pram import estimate_frequencies as estimate_frequencies
    from cloister.anonymize.perturbing.pram import invariant_matrix as invariant_matrix
    from cloister.anonymize.perturbing.pseudonyms import Pseudonyms as Pseudonyms
    from cloister.anonymize.perturbing.pseudonyms import dictionary_attack as dictionary_attack
    from cloister.anonymize.perturbing.record_swapping import RecordsSwapped as RecordsSwapped
    from cloister.anonymize.perturbing.record_swapping import RecordSwap as RecordSwap
    from cloister.anonymize.perturbing.suppression import LocalSuppression as LocalSuppression
    from cloister.anonymize.perturbing.suppression import Suppressed as Suppressed
    from cloister.anonymize.perturbing.swapping import RankSwap as RankSwap
    from cloister.anonymize.perturbing.swapping import Shuffle as Shuffle
    from cloister.anonymize.perturbing.swapping import Swapped as Swapped

__all__, __getattr__, __dir__ = Lazily(__name__).public
