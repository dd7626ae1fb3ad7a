"""Tables made safe to publish: values become coarser, rows are left out, and what is left is measured and attacked first.

The room::

    anonymizer.py       the one call; report.py (chart, page): what it was worth; publishing.py: the table that leaves
    frames.py, encoded.py, classes.py, recoding.py, problem.py
                        a table as whole numbers, rows that look alike, what a search is asked and answers
    hierarchies/        how a value becomes coarser
    models/             what each class of rows that look alike has to meet
    searches/, metrics/ ways to get there, and what is lost on the way
    risks/              how easily people are found in a table, and what is learnt of them then
    attackers/          what we could find out ourselves, before anybody else does
    safepub/            rows under (ε, δ)-differential privacy
    perturbing/         values that are changed instead of made coarser
    certificate.py      what was proved and tried of one table; files.py: tables that do not fit the memory
    from_tables.py      a table of a session, by the marked door
    paper.py            the parts of a page; document.py: a report described once, as text, as a page, in a file

Nothing here is differential privacy but `SafePub`, and every report says so. What may not live here: answers with noise (`query`,
`learn`, `synth`), attacks on mechanisms (`cloister.attacks`), pages and jobs (the hub).

>>> from cloister.anonymize import Anonymizer, KAnonymity
>>> anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression=0)
>>> sorted(anonymizer.fit_transform({"age": [30, 31, 60, 61]})["age"])
['30–31', '30–31', '60–61', '60–61']
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.anonymize.anonymizer import Anonymizer as Anonymizer
    from cloister.anonymize.anonymizer import HiddenRows as HiddenRows
    from cloister.anonymize.attackers import Attack as Attack
    from cloister.anonymize.attackers import Target as Target
    from cloister.anonymize.attackers import attack as attack
    from cloister.anonymize.attackers import attack_tables as attack_tables
    from cloister.anonymize.certificate import Certificate as Certificate
    from cloister.anonymize.certificate import certify as certify
    from cloister.anonymize.files import WrittenFile as WrittenFile
    from cloister.anonymize.files import anonymize_file as anonymize_file
    from cloister.anonymize.from_tables import Published as Published
    from cloister.anonymize.from_tables import publish_table as publish_table
    from cloister.anonymize.hierarchies.hierarchy import Hierarchy as Hierarchy
    from cloister.anonymize.metrics import TaskAccuracy as TaskAccuracy
    from cloister.anonymize.metrics import task_accuracy as task_accuracy
    from cloister.anonymize.metrics.named import METRICS as METRICS
    from cloister.anonymize.metrics.named import metric_of as metric_of
    from cloister.anonymize.models.alpha import AlphaKAnonymity as AlphaKAnonymity
    from cloister.anonymize.models.base import Attained as Attained
    from cloister.anonymize.models.closeness import TCloseness as TCloseness
    from cloister.anonymize.models.disclosure import DeltaDisclosure as DeltaDisclosure
    from cloister.anonymize.models.diversity import LDiversity as LDiversity
    from cloister.anonymize.models.k import KAnonymity as KAnonymity
    from cloister.anonymize.models.likeness import BetaLikeness as BetaLikeness
    from cloister.anonymize.models.presence import DeltaPresence as DeltaPresence
    from cloister.anonymize.models.presence import KMap as KMap
    from cloister.anonymize.report import Report as Report
    from cloister.anonymize.risks import Risk as Risk
    from cloister.anonymize.risks import SensitiveRisk as SensitiveRisk
    from cloister.anonymize.risks import Uniques as Uniques
    from cloister.anonymize.risks import risk as risk
    from cloister.anonymize.safepub import SafelyPublished as SafelyPublished
    from cloister.anonymize.safepub import SafePub as SafePub
    from cloister.anonymize.safepub import SafeTable as SafeTable
    from cloister.anonymize.safepub import publish_safely as publish_safely
    from cloister.anonymize.searches.clusters import Clusters as Clusters
    from cloister.anonymize.searches.frontier import Choice as Choice
    from cloister.anonymize.searches.frontier import frontier as frontier
    from cloister.anonymize.searches.greedy import Greedy as Greedy
    from cloister.anonymize.searches.lattice import OptimalLattice as OptimalLattice
    from cloister.anonymize.searches.local import LocalRecoding as LocalRecoding
    from cloister.anonymize.searches.mondrian import Mondrian as Mondrian
    from cloister.anonymize.searches.topdown import TopDown as TopDown

__all__, __getattr__, __dir__ = Lazily(__name__, extras=dict.fromkeys(("polars", "scipy", "sklearn"), "anonymize")).public
