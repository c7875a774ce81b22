"""Highlighted words: the message is text, whatever it holds."""

import html
import re

import numpy as np

from hydra_core.console.figures.theme import DARK, LIGHT
from hydra_core.console.inspect.view_words import block, escaped, highlighted, strongest, valid
from hydra_core.lab.robustness.occlusion import Occlusion, spans
from hydra_core.predictor.tokens import Gap
from tests.hostile_messages import MARKUP

OURS = re.compile(r'</?(?:div|span|i|b)(?: (?:dir|style|title)="[^"<>]*")*>')


def found(text, *effects):
    parts = spans(text)
    values = np.zeros((len(parts), 1))
    values[: len(effects), 0] = effects
    return Occlusion(parts, values, np.zeros(1), parts[-1][1] if parts else 0)


def test_only_our_own_tags_are_in_it_and_the_text_is_whole():
    for text in MARKUP:
        words = found(text, *np.linspace(-0.1, 0.1, len(spans(text))))
        made = highlighted(text, words, 0, LIGHT)
        bare = OURS.sub("", made)
        assert "<" not in bare
        assert ">" not in bare
        printable = [c for c in valid(text) if c.isprintable()]
        assert [c for c in html.unescape(bare) if c.isprintable() and c != "\ufffd"] == [
            c for c in printable if c != "\ufffd"
        ]


def test_raised_and_lowered_words_have_different_colours():
    made = highlighted("one two three", found("one two three", 0.1, -0.1), 0, DARK)
    assert 'title="+0.100"' in made
    assert 'title="-0.100"' in made
    assert made.count("<span") == 2
    assert len(set(re.findall(r"rgba\(\d+, ?\d+, ?\d+", made))) == 2


def test_the_strongest_words_come_first_and_weak_ones_not_at_all():
    text = "one two three"
    assert strongest(text, found(text, 0.02, 0.3, 0.001), 0) == ["two", "one"]


def test_a_cut_is_marked_where_it_begins():
    made = highlighted("seen unseen", found("seen unseen"), 0, LIGHT, Gap(5, 11))
    assert made.index("seen") < made.index("✂") < made.index("unseen")


def test_an_empty_message_is_no_fault():
    assert highlighted("", found(""), 0, LIGHT).startswith("<div")


def test_a_long_message_says_what_is_not_shown():
    text = "word " * 5_000
    assert "more characters" in highlighted(text, found(text), 0, LIGHT)


def test_markup_of_a_message_is_text():
    told = block(escaped("<img src=x onerror=alert(1)> & </div>\nنعم"))
    assert told.startswith('<div dir="auto"')
    assert "&lt;img src=x onerror=alert(1)&gt; &amp; &lt;/div&gt;\nنعم</div>" in told


def test_what_turns_a_text_around_or_cannot_be_sent_is_marked():
    assert escaped("a\u202eb\x00c\ud800") == "a\ufffdb\ufffdc?"


def test_joiners_that_words_are_written_with_stay():
    assert escaped("می\u200cخواهم 👩\u200d💻") == "می\u200cخواهم 👩\u200d💻"
