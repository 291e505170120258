"""Tests of the text on a terminal's bar while a job runs."""

from icl.cli.display import Display
from icl.events import ItemProgress, Planned, StateChanged, WorkItem

RUN = ItemProgress(WorkItem("train", "ahn/theorem3"), 0.5, "5 seeds, step 1/2")


def said(display: Display) -> str:
    return str(display._bar.tasks[0].fields["now"])


def test_a_single_job_is_named() -> None:
    display = Display("train ahn/theorem3")
    assert said(display) == "train ahn/theorem3: starting"
    display.see(RUN)
    assert said(display) == "train ahn/theorem3: 5 seeds, step 1/2"


def test_of_many_it_says_which_of_how_many() -> None:
    display = Display(quiet=True)
    display.see(Planned(70, 6))
    display.see(StateChanged(WorkItem("figure", "ahn/fig1"), "running"))
    assert said(display) == "7/70 figure ahn/fig1"
    display.see(RUN)
    assert said(display) == "7/70 figure ahn/fig1: ahn/theorem3 5 seeds, step 1/2"
