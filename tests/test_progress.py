from icl.progress import ItemProgress, WorkItem, listening, track


def test_the_listener_hears_each_step_and_nothing_after():
    heard, work = [], WorkItem("check", "own/letters")
    with listening(work, heard.append):
        assert list(track("ab", "letters", 2)) == ["a", "b"]
    assert heard == [ItemProgress(work, 0.5, "letters"), ItemProgress(work, 1.0, "letters")]
    assert list(track("ab", "letters", 2)) == ["a", "b"]
    assert len(heard) == 2
