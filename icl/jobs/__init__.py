"""The work of each verb, as typed functions over a request and a session, without argv or a terminal."""
