"""Write numbers and tables from stored records, and the reference, into the pages of docs/ and README.md.

Pages are committed in their final form, so a forge shows them as the site does. HTML comments name the source
of a generated number or table:

    0.1336<!-- ahn/theorem3 measured.risk .4f -->            one number, in its format

    <!-- statements ahn -->                                   a table, up to `<!-- end -->`
    ...
    <!-- end -->

`scripts/docs.sh render` renews all of it. A test renders again and compares.
"""
