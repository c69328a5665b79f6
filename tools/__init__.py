"""Programs that write files of this repository, and that compare conversions with other tools. Tests run them too."""
