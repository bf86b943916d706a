"""Docstrings taken apart."""

import pytest

from reactflow.tooling.docs import ParameterDocs, read_docs

GOOGLE = """Forecast the weather.

    Knows every city of the world.

    Args:
        city (str): The city's name,
            as in "Beijing".

        days (Optional[int], optional): How many: 1 to 7.
            - today counts

    Returns:
        One line for each day.
    """

NUMPY = """Forecast the weather.

    Parameters
    ----------
    city : str
        The city's name,

        as in "Beijing".
    lat, lon : float, optional
        Where it is.
    days
        How many.

    Returns
    -------
    list
        One line for each day.
    """

SPHINX = """Forecast the weather.

    Note: slow.

    :param city: The city's name,
        as in "Beijing".
    :type city: str
    :param int days: How many.
    :returns: One line for each day.
    :rtype: list
    :raises KeyError: Never.
    """


def test_a_google_docstring_gives_a_description_without_the_parameter_section():
    docs = read_docs(GOOGLE)

    assert docs.description == (
        "Forecast the weather.\n\nKnows every city of the world.\n\nReturns:\n    One line for each day."
    )
    assert docs.parameters == {
        "city": ParameterDocs('The city\'s name, as in "Beijing".', "str"),
        "days": ParameterDocs("How many: 1 to 7. - today counts", "Optional[int], optional"),
    }


def test_a_numpy_docstring_is_read_to_its_next_section():
    docs = read_docs(NUMPY)

    assert docs.description == "Forecast the weather.\n\nReturns\n-------\nlist\n    One line for each day."
    assert docs.parameters == {
        "city": ParameterDocs('The city\'s name, as in "Beijing".', "str"),
        "lat": ParameterDocs("Where it is.", "float, optional"),
        "lon": ParameterDocs("Where it is.", "float, optional"),
        "days": ParameterDocs("How many.", ""),
    }


def test_a_numpy_section_ends_where_prose_begins():
    docs = read_docs("A.\n\nParameters\n----------\nx : int\n    One.\n\nAnd more prose follows here.")

    assert docs.description == "A.\n\nAnd more prose follows here."
    assert docs.parameters == {"x": ParameterDocs("One.", "int")}


def test_a_sphinx_docstring_keeps_what_is_returned():
    docs = read_docs(SPHINX)

    assert docs.description == "Forecast the weather.\n\nNote: slow.\n\nReturns: One line for each day."
    assert docs.parameters == {
        "city": ParameterDocs('The city\'s name, as in "Beijing".', "str"),
        "days": ParameterDocs("How many.", "int"),
    }


def test_a_chinese_docstring_may_use_full_width_colons_and_its_own_heading():
    docs = read_docs(
        "查询天气。\n\n参数：\n    city（str）：城市名，\n        例如北京。\n    days: 天数\n\n返回：\n    预报"
    )

    assert docs.description == "查询天气。\n\n返回：\n    预报"
    assert docs.parameters == {"city": ParameterDocs("城市名，例如北京。", "str"), "days": ParameterDocs("天数", "")}


@pytest.mark.parametrize("section", ["Args", "Arguments", "Parameters", "Params", "Keyword Args"])
def test_a_parameter_section_may_be_called_by_any_usual_name(section: str):
    assert read_docs(f"A.\n\n{section}:\n  x: One.\n").parameters == {"x": ParameterDocs("One.", "")}


def test_a_section_after_the_parameters_belongs_to_the_description():
    assert read_docs("A.\n\nArgs:\n  x: One.\nNote:\n  Two.").description == "A.\n\nNote:\n  Two."


def test_lines_before_the_first_entry_of_a_section_are_dropped():
    assert read_docs("A.\n\nArgs:\n  All are required\n  x: One.").parameters == {"x": ParameterDocs("One.", "")}


@pytest.mark.parametrize(
    "text",
    ["", "Args:", "A.\nArgs:\nnothing indented", "Ratio: 3", ":param: no name", ":unknown field: x", "Parameters\n--"],
)
def test_what_is_in_no_known_style_is_all_description(text: str):
    docs = read_docs(text)

    assert (docs.description, docs.parameters) == (text, {})


def test_no_docstring_is_an_empty_description():
    assert read_docs(None).description == ""


def test_fields_without_words_say_nothing():
    docs = read_docs("A.\n:param x:\n:type x: int\n:returns:")

    assert docs.parameters == {"x": ParameterDocs("", "int")}
    assert docs.description == "A.\n:returns:"
