"""The README tells the truth about the commands."""

from tests.http.readme_table import README, with_table


def test_the_command_table_is_that_of_the_document() -> None:
    text = README.read_text()
    assert text == with_table(text), "run: python -m tests.http.readme_table"
