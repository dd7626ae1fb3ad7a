"""Two-party circuits: two parties compute what neither could alone, and learn the result and nothing else.

    fixed_point.py  what a party brings: fixed-point arrays with declared bounds
    language.py     a small numeric language of such arrays, whose bounds are known before anything runs
    program.py      a function in that language, and who brings what; its cost; the reference in the clear
    gates.py        arithmetic from AND, NOT and exclusive or, whole vectors at a time
    machines.py     what carries gates out: counting them, or bits in the clear
    garbling.py     gates carried out on labels that mean nothing to the one who sees them (half gates)
    transfer.py     oblivious transfer of labels: base transfers, and their extension
    protocol.py     the messages of two parties over any transport of bytes
    programs.py     ready programs: sums compared and ranked, sets intersected, encrypted sums taken up
    geometric.py    noise that neither party knows
    eigenvectors.py    the leading eigenvectors of a symmetric matrix
    moments.py      principal components and discriminants of sums of moments

What a party learns is the result, exactly. It is not differentially private: that is for the program to see to.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.together.circuits.eigenvectors import leading_eigenvectors as leading_eigenvectors
    from cloister.together.circuits.fixed_point import FixedPoint as FixedPoint
    from cloister.together.circuits.geometric import GeometricNoise as GeometricNoise
    from cloister.together.circuits.language import SecretArray as SecretArray
    from cloister.together.circuits.language import concatenate as concatenate
    from cloister.together.circuits.language import select as select
    from cloister.together.circuits.moments import Moments as Moments
    from cloister.together.circuits.program import Program as Program
    from cloister.together.circuits.programs import BlindedSum as BlindedSum
    from cloister.together.circuits.programs import comparison_of_sums as comparison_of_sums
    from cloister.together.circuits.programs import intersection_size as intersection_size
    from cloister.together.circuits.programs import largest_sums as largest_sums
    from cloister.together.circuits.protocol import QueueTransport as QueueTransport
    from cloister.together.circuits.protocol import SocketTransport as SocketTransport
    from cloister.together.circuits.protocol import Transport as Transport
    from cloister.together.circuits.protocol import run_both as run_both
    from cloister.together.circuits.protocol import run_evaluator as run_evaluator
    from cloister.together.circuits.protocol import run_garbler as run_garbler

__all__, __getattr__, __dir__ = Lazily(__name__).public
