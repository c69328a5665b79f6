"""What a recording says when a part of it is missing.

Complete recordings of every source lose events (`drops`), and the rows of what is left are compared with those of the whole (`oracle`): no figure
that is marked exact and complete may differ. `limits.tsv` lists what a format cannot show, `known.tsv` what is wrong today.

    python -m tests.missing            each kind, and some single events: the tests add random shares of kinds
    python -m tests.missing --all      everything, as a table with an example of each violation
"""
