"""What is kept in English and shown in the reader's language is known to the translators."""

from __future__ import annotations

from cloister.hub.decisions.policy.methods import offered
from cloister.hub.services.learning.expected import LOST
from cloister.hub.services.learning.fitting import _STAGES, LINES
from cloister.hub.services.learning.models import CARD
from cloister.hub.web.languages import language_of


def test_every_method_and_every_stage_of_ours_is_translated():
    wanted = {method.title for method in offered().values()} | {*_STAGES, *LINES, *LOST.values(), *CARD}
    chinese = language_of("zh_CN").gettext
    assert [text for text in sorted(wanted) if chinese(text) == text] == []
