"""Writes into the pages of docs/ (and README.md) what follows from stored records and from the code.

Pages are committed as they read, so that a forge shows them as the site does. What is filled in stands before
an HTML comment that says where it is from:

    0.1336<!-- ahn/theorem3 measured.risk .4f -->            one number, in its format

    <!-- statements ahn -->                                   a table, up to `<!-- end -->`
    ...
    <!-- end -->

`scripts/docs.sh render` renews all of it. A test renders again and compares.
"""
