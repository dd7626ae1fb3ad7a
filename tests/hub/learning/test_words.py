"""What is kept in English and shown in the reader's language is known to the translators."""

from __future__ import annotations

from cloister.hub.policy.methods import offered
from cloister.hub.services.learning.expected import LOST
from cloister.hub.services.learning.fitting import _STAGES
from cloister.hub.services.learning.membership import LINES
from cloister.hub.services.learning.words import SHOWN
from cloister.hub.web.languages import language_of


def test_every_method_and_every_stage_of_ours_is_translated():
    wanted = {method.title for method in offered().values()} | {"learning", "keeping the model", *LINES, *LOST.values()}
    assert wanted <= set(SHOWN)
    assert {"learning", "keeping the model"} <= set(_STAGES)
    chinese = language_of("zh_CN").gettext
    assert [text for text in SHOWN if chinese(text) == text] == []
