"""Labels keep clear of each other and inside the plot."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.console.figures.labels import Label, label_notes, longest, place
from hydra_core.console.figures.theme import fitting

SIZE = (600.0, 380.0)


def boxes(labels, placements):
    for label, spot in zip(labels, placements, strict=True):
        wide, tall = len(label.text) * 6.7, 17.0
        x, y = label.x + spot.dx, label.y + spot.dy
        yield x - wide / 2, x + wide / 2, y - tall / 2, y + tall / 2


def overlap(a, b):
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def test_labels_of_a_tight_cluster_do_not_cover_each_other():
    labels = [Label(f"claude-sonnet-{i}", 300 + 6 * i, 190 + 5 * (-1) ** i) for i in range(5)]
    found = list(boxes(labels, place(labels, np.empty((0, 2)), *SIZE)))
    assert not any(overlap(a, b) for i, a in enumerate(found) for b in found[:i])


def test_fifteen_labels_on_a_curve_do_not_cover_each_other():
    steps = np.arange(15)
    x, y = np.geomspace(3, 580, 15), 60 + 14.0 * steps
    labels = [Label(fitting(f"provider/long-model-{i}", longest(15)), *at)
              for i, at in enumerate(zip(x, y, strict=True))]  # fmt: skip
    found = list(boxes(labels, place(labels, np.stack([x, y], axis=1), *SIZE)))
    assert not any(overlap(a, b) for i, a in enumerate(found) for b in found[:i])


@given(st.floats(0, 600), st.floats(0, 380))
def test_a_lone_label_stays_inside_the_plot(x, y):
    label = Label("gpt-5.4-mini", x, y)
    ((left, right, bottom, top),) = boxes([label], place([label], np.empty((0, 2)), *SIZE))
    assert left >= -1
    assert right <= SIZE[0] + 1
    assert bottom >= -1
    assert top <= SIZE[1] + 1


def test_a_label_moves_off_a_line():
    line = np.stack([np.linspace(0, 600, 200), np.full(200, 190.0)], axis=1)
    label = Label("gpt-5", 300, 190)
    ((_, _, bottom, top),) = boxes([label], place([label], line, *SIZE))
    assert bottom > 190
    assert top > 190


def test_far_labels_get_a_leader_line():
    crowd = np.stack(np.meshgrid(np.arange(270, 331, 4), np.arange(160, 221, 4)), -1).reshape(-1, 2)
    label = Label("x", 300, 190)
    notes = label_notes([label], place([label], crowd.astype(float), *SIZE), [(1, 1)], [{}], "#000")
    assert notes[0]["showarrow"]
