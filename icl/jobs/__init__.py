"""What a verb does, as typed functions over a request and a session; none knows argv or a terminal."""
