from icl.progress import listening, track


def test_the_listener_hears_each_step_and_nothing_after():
    heard = []
    with listening(lambda what, share, seconds: heard.append((what, share, seconds >= 0))):
        assert list(track("ab", "letters", 2)) == ["a", "b"]
    assert heard == [("letters", 0.5, True), ("letters", 1.0, True)]
    assert list(track("ab", "letters", 2)) == ["a", "b"]
    assert len(heard) == 2
